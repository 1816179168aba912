package crdmigration

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/api/v1alpha1"
)

const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedByValue = "godwit"
	instanceLabel  = "app.kubernetes.io/instance"
)

// Maker is the manager that made a migration: its namespace, where there is one. Of
// two managers in one cluster, neither takes away what the other has made.
type Maker string

// For is the CRDMigration that the manager makes for a definition: its spec is
// empty, for users to fill, and it goes with the definition.
func (k Maker) For(crd metav1.Object) *v1alpha1.CRDMigration {
	labels := map[string]string{managedByLabel: managedByValue}
	if k != "" {
		labels[instanceLabel] = string(k)
	}
	return &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{
		Name: crd.GetName(), Labels: labels,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition",
			Name: crd.GetName(), UID: crd.GetUID(),
		}},
	}}
}

// Made tells such a migration from one that a user made, which needs no label on the
// definition and is never removed, and from another manager's.
func (k Maker) Made(m *v1alpha1.CRDMigration) bool {
	return m.Labels[managedByLabel] == managedByValue && m.Labels[instanceLabel] == string(k)
}
