package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
)

func TestServedAndEstablished(t *testing.T) {
	crd := kubetest.Widgets(kubetest.Versions(
		apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1"},
		apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Served: true},
		apiextensionsv1.CustomResourceDefinitionVersion{Name: "v3", Storage: true},
	))
	if diff := cmp.Diff([]string{"v2"}, kube.ServedVersions(crd)); diff != "" {
		t.Errorf("served versions (-want +got):\n%s", diff)
	}
	for version, want := range map[string]bool{"v1": false, "v2": true, "v3": false, "": false, "v9": false} {
		if got := kube.Serves(crd, version); got != want {
			t.Errorf("Serves(%q) = %t, want %t", version, got, want)
		}
	}
	if got := kube.StorageVersion(crd); got != "v3" {
		t.Errorf("storage version = %q, want v3, which is not served", got)
	}
	if got := kube.StorageVersion(&apiextensionsv1.CustomResourceDefinition{}); got != "" {
		t.Errorf("storage version of an empty CRD = %q, want none", got)
	}
	if !kube.Established(crd) || kube.Established(kubetest.Widgets(kubetest.Conditions())) {
		t.Error("Established must follow the condition Established")
	}
}
