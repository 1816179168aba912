package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Conditions points to the conditions of the status.
func (m *CRDMigration) Conditions() *[]metav1.Condition { return &m.Status.Conditions }

// ObservedGeneration points to the generation that the status is about.
func (m *CRDMigration) ObservedGeneration() *int64 { return &m.Status.ObservedGeneration }

// Conditions points to the conditions of the status.
func (t *ControllerRevisionUpgradeTrigger) Conditions() *[]metav1.Condition {
	return &t.Status.Conditions
}

// ObservedGeneration points to the generation that the status is about.
func (t *ControllerRevisionUpgradeTrigger) ObservedGeneration() *int64 {
	return &t.Status.ObservedGeneration
}

// Conditions points to the conditions of the status.
func (u *ControllerRevisionUpgrade) Conditions() *[]metav1.Condition { return &u.Status.Conditions }

// ObservedGeneration points to the generation that the status is about.
func (u *ControllerRevisionUpgrade) ObservedGeneration() *int64 { return &u.Status.ObservedGeneration }
