package kube_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
)

// TestPatchNamesWhoOwnsTheVersions: the next server-side apply of the owner conflicts with the patch.
func TestPatchNamesWhoOwnsTheVersions(t *testing.T) {
	entry := func(manager string, o metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: o, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	cases := map[string]struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		want    godwit.Owner
	}{
		"applied": {"the owner", []metav1.ManagedFieldsEntry{entry("flux", metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:versions":{}}}`)}, godwit.Owner{Manager: "flux", ServerSide: true}},
		"updated": {"nothing says that it will apply again", []metav1.ManagedFieldsEntry{entry("operator", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:versions":{}}}`)}, godwit.Owner{}},
		"helm":    {"its next upgrade sets it back", []metav1.ManagedFieldsEntry{entry("helm", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:versions":{}}}`)}, godwit.Owner{Manager: "helm"}},
		"other":   {"it owns other fields", []metav1.ManagedFieldsEntry{entry("labels", metav1.ManagedFieldsOperationApply, `{"f:metadata":{}}`)}, godwit.Owner{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			crd := kubetest.Widgets(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.ManagedFields = c.entries })
			for _, got := range []godwit.Owner{kube.SetServed(crd, true, "v1").Owner, kube.AddVersions(crd, "v2").Owner} {
				if got == c.want {
					continue
				}
				t.Errorf("%s: owner %+v, want %+v", c.reason, got, c.want)
			}
		})
	}
}
