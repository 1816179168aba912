package hub

import (
	"testing"
	"time"
)

// TestFreshLease: only two renewals after the watch began prove that a cluster is there,
// whatever the clocks say.
//
// Matrix: H31.
func TestFreshLease(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	type sight struct {
		uid     string
		renewed time.Time
	}
	at := func(uid string, offsets ...time.Duration) []sight {
		var s []sight
		for _, o := range offsets {
			s = append(s, sight{uid, now.Add(o)})
		}
		return s
	}
	cases := map[string]struct {
		reason string
		sights []sight
		want   bool
	}{
		"Nothing":       {"Without a lease nothing is known.", nil, false},
		"CreatedByHub":  {"The hub creates the lease with the present time.", at("a", 0, 0, 0), false},
		"Stale":         {"Available stays True for minutes after the cluster left.", at("a", -time.Minute, -time.Minute), false},
		"OneRenewal":    {"The last renewal of a cluster that leaves may arrive late.", at("a", 0, time.Minute), false},
		"TwoRenewals":   {"The cluster is there.", at("a", 0, time.Minute, 2*time.Minute), true},
		"ClockBehind":   {"A clock that is ten minutes behind renews as well.", at("a", 0, -10*time.Minute, -9*time.Minute), true},
		"ClockAhead":    {"So does one that is ten minutes ahead.", at("a", 0, 10*time.Minute, 11*time.Minute), true},
		"CreatedAgain":  {"A lease of another cluster of this name counts from the start.", append(at("a", 0, time.Minute), at("b", 2*time.Minute)...), false},
		"RenewedToSame": {"A renewTime that does not change is no renewal.", at("a", 0, time.Minute, time.Minute, time.Minute), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var w LeaseWatch
			for _, s := range tc.sights {
				w.Observe(s.uid, s.renewed)
			}
			if w.Fresh() != tc.want {
				t.Errorf("%s\nFresh() = %t, want %t", tc.reason, w.Fresh(), tc.want)
			}
		})
	}
}
