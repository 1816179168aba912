package serving

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestLabels: the API server refuses a lease with a label that is not valid, and then no manager would be elected.
func TestLabels(t *testing.T) {
	selector, err := labels.Parse(LeaseSelector)
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{
		"v0.1.0":                               "v0.1.0",
		"(devel)":                              "devel",
		"v0.1.1-0.20260504120000-abcdef+dirty": "v0.1.1-0.20260504120000-abcdef_dirty",
		"v1.0.0-" + string(make([]byte, 100)):  "v1.0.0",
		"":                                     "",
		"v1.0.0-rc.1+a.long.build.of.some.0123456789012345678901234567890123456789": "v1.0.0-rc.1_a.long.build.of.some.012345678901234567890123456789",
	} {
		got := Options{Version: version}.labels("godwit-revision-upgrader")
		for key, value := range got {
			if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
				t.Errorf("%q: label %s=%q: %v", version, key, value, problems)
			}
		}
		if got[versionLabel] != want || got[componentLabel] != "revision-upgrader" {
			t.Errorf("labels of %q are %v, want version %q", version, got, want)
		}
		if !selector.Matches(labels.Set(got)) {
			t.Errorf("the selector does not find %v", got)
		}
	}
}
