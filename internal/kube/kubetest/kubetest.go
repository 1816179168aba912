// Package kubetest makes CRDs for tests of pure functions.
package kubetest

import (
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Flip is when the storage version of [Widgets] was set, according to its managedFields: cut to the second.
var Flip = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Resource is the resource of [Widgets].
var Resource = schema.GroupResource{Group: "example.com", Resource: "widgets"}

// Edit changes a CRD.
type Edit = func(*apiextensionsv1.CustomResourceDefinition)

// Widgets returns a CRD whose storage version changed from v1 to v2 at [Flip], and whose objects have not been
// migrated.
func Widgets(edits ...Edit) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: "widgets.example.com", UID: "u1", Generation: 7,
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: Flip},
				FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{}},"f:spec":{"f:versions":{}}}`)},
			}},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true},
				{Name: "v2", Served: true, Storage: true},
			},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{
			StoredVersions: []string{"v1", "v2"},
			Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue},
				{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
			},
		},
	}
	for _, edit := range edits {
		edit(crd)
	}
	return crd
}

// Versions sets spec.versions.
func Versions(v ...apiextensionsv1.CustomResourceDefinitionVersion) Edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = v }
}

// Stored sets status.storedVersions.
func Stored(v ...string) Edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Status.StoredVersions = v }
}

// Conditions sets status.conditions.
func Conditions(c ...apiextensionsv1.CustomResourceDefinitionCondition) Edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Status.Conditions = c }
}

// WithStatus gives the storage version the status subresource.
func WithStatus(crd *apiextensionsv1.CustomResourceDefinition) {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Storage {
			crd.Spec.Versions[i].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
		}
	}
}
