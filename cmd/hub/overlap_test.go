package hub

import (
	"testing"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// TestOverlap: migrations of disjoint clusters run side by side; one that shares a cluster
// waits and names the other.
func TestOverlap(t *testing.T) {
	claims := []Claim{{"ns/a", []string{"c1", "c2"}}, {"ns/b", []string{"c3"}}}
	cases := map[string]struct {
		clusters []string
		want     string
	}{
		"Disjoint": {[]string{"c4", "c5"}, ""},
		"Shared":   {[]string{"c4", "c3"}, "ns/b c3"},
		"First":    {[]string{"c3", "c2"}, "ns/a c2"},
		"None":     {nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			migration, cluster, overlaps := Overlap(tc.clusters, claims)
			got := ""
			if overlaps {
				got = migration + " " + cluster
			}
			if got != tc.want {
				t.Errorf("Overlap(%v) = %q, want %q", tc.clusters, got, tc.want)
			}
		})
	}
}

// TestClaim: a migration has its clusters from its claim until nothing of it is left.
func TestClaim(t *testing.T) {
	r := newRun(t, "c1", "c2")
	claimed := func(when string, want bool) {
		t.Helper()
		if c, got := ClaimOf("ns/m", r.state); got != want || got && len(c.Clusters) != 2 {
			t.Errorf("%s: claim %v, %t, want %t", when, c, got, want)
		}
	}
	claimed("pending", false)
	r.step(Start{At: r.now})
	r.answer(Manager)
	r.answer(Source)
	claimed("asking for its claim", false)
	r.answer(Manager)
	claimed("claimed", true)
	r.until(api.PhaseDeploying)
	r.fail(Target, "no")
	claimed("returning clusters", true)
	r.until(api.PhaseFailed)
	claimed("failed", false)
}
