package kube

import (
	"bytes"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
)

// EntriesOf returns the entries of an object's managedFields that own a field by its name, such as spec or versions. Entries of
// subresources are not among them.
func EntriesOf(o metav1.Object, field string) []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	for _, e := range o.GetManagedFields() {
		if e.Subresource == "" && e.FieldsV1 != nil && bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:`+field+`"`)) {
			entries = append(entries, e)
		}
	}
	return entries
}

// AppliersOf names the managers whose server-side apply owns a field of an object.
func AppliersOf(o metav1.Object, field string) []string {
	var managers []string
	for _, e := range EntriesOf(o, field) {
		if e.Operation == metav1.ManagedFieldsOperationApply {
			managers = append(managers, e.Manager)
		}
	}
	return managers
}

// helm is the field manager of Helm 3, and of a client-side apply of Helm 4.
const helm = "helm"

// OwnerOf returns who applies a field of an object from a manifest. A server-side apply comes first, since it conflicts with other
// changes. `kubectl apply` and Helm also set back what others have changed, and their entries are updates like any other: kubectl
// leaves its annotation, and Helm its name.
func OwnerOf(o metav1.Object, field string) godwit.Owner {
	if appliers := AppliersOf(o, field); len(appliers) > 0 {
		return godwit.Owner{Manager: appliers[0], ServerSide: true}
	}
	if o.GetAnnotations()[corev1.LastAppliedConfigAnnotation] != "" {
		return godwit.Owner{Manager: "kubectl apply"}
	}
	for _, e := range EntriesOf(o, field) {
		if e.Manager == helm {
			return godwit.Owner{Manager: helm}
		}
	}
	return godwit.Owner{}
}
