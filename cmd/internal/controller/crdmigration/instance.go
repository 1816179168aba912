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

// InstanceID is the namespace of a manager, or empty outside a cluster. With it, two managers in one cluster do not
// delete each other's CRDMigrations.
type InstanceID string

// New returns the CRDMigration that the manager creates for a CRD. Its spec is empty, for
// users to fill, and the API server deletes it with the CRD.
func (id InstanceID) New(crd metav1.Object) *v1alpha1.CRDMigration {
	labels := map[string]string{managedByLabel: managedByValue}
	if id != "" {
		labels[instanceLabel] = string(id)
	}
	return &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{
		Name: crd.GetName(), Labels: labels,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition",
			Name: crd.GetName(), UID: crd.GetUID(),
		}},
	}}
}

// Created reports whether this manager created a CRDMigration. Those of users need no label
// on the CRD, and the manager never deletes them.
func (id InstanceID) Created(m *v1alpha1.CRDMigration) bool {
	return m.Labels[managedByLabel] == managedByValue && m.Labels[instanceLabel] == string(id)
}
