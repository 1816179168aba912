package preflight

import (
	"slices"
	"testing"
	"time"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

func TestRisks(t *testing.T) {
	const lease = time.Minute
	for name, test := range map[string]struct {
		reason   string
		observed clusterFacts
		risks    []*godwit.Reason
	}{
		"Nothing":   {reason: "The cluster has nothing that stays behind."},
		"Evicted":   {reason: "The user has accepted it.", observed: clusterFacts{evicted: []string{"app"}}, risks: []*godwit.Reason{cluster.ReasonWorkStays}},
		"Unmoved":   {reason: "The user has accepted it.", observed: clusterFacts{unmoved: []string{"Secret mine"}}, risks: []*godwit.Reason{cluster.ReasonUserObjects}},
		"AddOn":     {reason: "Its agent leaves.", observed: clusterFacts{addOns: []string{"search"}}, risks: []*godwit.Reason{ReasonAddOnStays}},
		"OldLease":  {reason: "A renewal may be as old as the lease.", observed: clusterFacts{lease: lease, skew: -lease - 30*time.Second}},
		"SlowClock": {reason: "The lease is too old for the clock of the hub.", observed: clusterFacts{lease: lease, skew: -lease - 2*time.Minute}, risks: []*godwit.Reason{ReasonClock}},
		"FastClock": {reason: "No clock that is right renews in the future.", observed: clusterFacts{lease: lease, skew: 10 * time.Minute}, risks: []*godwit.Reason{ReasonClock}},
	} {
		risks := test.observed.risks("c1")
		if got := reasons(risks); !slices.Equal(got, test.risks) {
			t.Errorf("%s: %s The risks are %v, want %v", name, test.reason, got, test.risks)
		}
	}
}

func reasons(findings []godwit.Finding) (all []*godwit.Reason) {
	for _, f := range findings {
		all = append(all, f.Reason)
	}
	return all
}
