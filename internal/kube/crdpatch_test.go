package kube_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		want    string
	}{
		"applied": {"the owner", []metav1.ManagedFieldsEntry{entry("flux", metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:versions":{}}}`)}, "flux"},
		"updated": {"an update conflicts with nothing", []metav1.ManagedFieldsEntry{entry("helm", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:versions":{}}}`)}, ""},
		"other":   {"it owns other fields", []metav1.ManagedFieldsEntry{entry("labels", metav1.ManagedFieldsOperationApply, `{"f:metadata":{}}`)}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			crd := kubetest.Widgets(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.ManagedFields = c.entries })
			if got := kube.SetServed(crd, true, "v1").Owner; got != c.want {
				t.Errorf("%s: owner %q, want %q", c.reason, got, c.want)
			}
		})
	}
}
