package source

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// TestEvictedWorks: the work agent deletes what a ManifestWork has applied, unless its delete option is Orphan.
func TestEvictedWorks(t *testing.T) {
	for name, test := range map[string]struct {
		reason, work string
		policy       workv1.DeletePropagationPolicyType
		labels       map[string]string
		evicted      bool
	}{
		"Klusterlet":  {reason: "The import controller creates it on the target.", work: "c1-klusterlet"},
		"CRDs":        {reason: "The import controller creates them on the target.", work: "c1-klusterlet-crds"},
		"OfOther":     {reason: "It is only named as a klusterlet.", work: "c2-klusterlet", evicted: true},
		"Orphan":      {reason: "The work agent leaves what such a work has applied.", work: "app", policy: workv1.DeletePropagationPolicyTypeOrphan},
		"Foreground":  {reason: "The work agent deletes it.", work: "app", policy: workv1.DeletePropagationPolicyTypeForeground, evicted: true},
		"Selectively": {reason: "The work agent deletes a part of it.", work: "app", policy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan, evicted: true},
		"Default":     {reason: "The default is Foreground.", work: "app", evicted: true},
		"AddOn":       {reason: "The agent of the add-on leaves with it.", work: "addon-search-deploy-0", labels: map[string]string{addOnLabel: "search"}},
	} {
		w := workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: test.work, Labels: test.labels}}
		if test.policy != "" {
			w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: test.policy}
		}
		want := []string(nil)
		if test.evicted {
			want = []string{test.work}
		}
		if got := EvictedWorks("c1", []workv1.ManifestWork{w}); !slices.Equal(got, want) {
			t.Errorf("%s: %s Evicted are %v, want %v", name, test.reason, got, want)
		}
	}
}

func TestFewAreNamed(t *testing.T) {
	if got := WhyEvicted("c1", []string{"a", "b", "c", "d", "e"}); !strings.HasPrefix(got, "ManifestWork a, b, c and 2 others of the source hub") {
		t.Error(got)
	}
}
