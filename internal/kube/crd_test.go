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

func TestTrimmed(t *testing.T) {
	cases := map[string]struct {
		reason string
		crd    *apiextensionsv1.CustomResourceDefinition
		want   bool
	}{
		"storage version alone": {"the promise itself", kubetest.Widgets(kubetest.Stored("v2")), true},
		"old and new":           {"objects may be at v1", kubetest.Widgets(), false},
		"new and old":           {"the order of the list means nothing", kubetest.Widgets(kubetest.Stored("v2", "v1")), false},
		"old alone":             {"the storage version must be the one", kubetest.Widgets(kubetest.Stored("v1")), false},
		"twice":                 {"an odd list is no promise", kubetest.Widgets(kubetest.Stored("v2", "v2")), false},
		"nothing":               {"an empty list is no promise", kubetest.Widgets(kubetest.Stored()), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := kube.Trimmed(tc.crd); got != tc.want {
				t.Errorf("trimmed = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}
