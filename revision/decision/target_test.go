package decision

import (
	"testing"
)

func TestTarget(t *testing.T) {
	t.Parallel()
	known := Description{Versions: []string{"v1alpha1", "v1alpha2", "v1beta1"}, Targets: []string{"v1beta1"}}
	all := []string{"v1", "v1beta1", "v1alpha2", "v1alpha1"}
	cases := map[string]struct {
		reason         string
		asked, version string
		crd            CRD
		want           string
	}{
		"the storage version":        {"it is what the software writes", "", "v1alpha1", CRD{StorageVersion: "v1beta1", ServedVersions: all[1:]}, "v1beta1"},
		"asked for":                  {"a user decides", "v1alpha2", "v1alpha1", CRD{StorageVersion: "v1beta1", ServedVersions: all[1:]}, "v1alpha2"},
		"an older storage version":   {"software that stores it may not read a newer one", "", "v1alpha1", CRD{StorageVersion: "v1alpha2", ServedVersions: all[1:]}, "v1alpha2"},
		"a later storage version":    {"what can be converted is, and the later software still reads it", "", "v1alpha1", CRD{StorageVersion: "v1", ServedVersions: all}, "v1beta1"},
		"there, and not converted":   {"it is as new as a conversion makes it", "", "v1beta1", CRD{StorageVersion: "v1", ServedVersions: all}, "v1beta1"},
		"at the later one":           {"nothing is to be done", "", "v1", CRD{StorageVersion: "v1", ServedVersions: all}, "v1"},
		"none of the others served":  {"later software does not read what a conversion makes", "", "v1alpha1", CRD{StorageVersion: "v1", ServedVersions: all[:1]}, "v1"},
		"asked for, and later known": {"a user decides", "v1", "v1alpha1", CRD{StorageVersion: "v1", ServedVersions: all}, "v1"},
	}
	for name, test := range cases {
		if got := test.crd.target(test.asked, test.version, known); got != test.want {
			t.Errorf("%s: %q, want %q: %s", name, got, test.want, test.reason)
		}
	}
}
