package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of every kind here.
var GroupVersion = schema.GroupVersion{Group: "godwit.dev", Version: "v1alpha1"}

// AddToScheme registers the kinds.
var AddToScheme = func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &CRDMigration{}, &CRDMigrationList{},
		&ControllerRevisionUpgradeTrigger{}, &ControllerRevisionUpgradeTriggerList{}, &ControllerRevisionUpgrade{}, &ControllerRevisionUpgradeList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
