package storageversion

import (
	"testing"

	"github.com/godwit-dev/godwit"
)

// TestRemediesOfABlockedPlan: a run that tries every object is refused like any other
// while something stands in its way, unless that is what the dry run is about.
func TestRemediesOfABlockedPlan(t *testing.T) {
	const try = "try every object"
	incomplete := []godwit.Warning{{Reason: ReasonPreflightIncomplete, Fix: godwit.Do(try)}, {Reason: ReasonAdmissionMutates, Fix: godwit.Do("migrate")}}
	cases := map[string]struct {
		blockers []string
		want     string
	}{
		"nothing":               {nil, try},
		"a denial":              {[]string{ReasonAdmissionDenied}, try},
		"a server that waits":   {[]string{ReasonServerLeaseStale}, try},
		"another migrator":      {[]string{ReasonMigrationInProgress}, "first do what MigrationInProgress asks for; then " + try},
		"two permissions, more": {[]string{ReasonForbidden, ReasonForbidden, ReasonCRDKeepsChanging}, "first do what CRDKeepsChanging and Forbidden asks for; then " + try},
	}
	for name, tc := range cases {
		var blockers []godwit.Blocker
		for _, reason := range tc.blockers {
			blockers = append(blockers, godwit.Blocker{Reason: reason})
		}
		got := afterBlockers(incomplete, blockers)
		if got[0].Fix.String() != tc.want || got[1].Fix.String() != "migrate" {
			t.Errorf("%s: %q, want %q", name, got[0].Fix, tc.want)
		}
		if incomplete[0].Fix.String() != try {
			t.Fatalf("%s: the warnings that were given are changed", name)
		}
	}
}
