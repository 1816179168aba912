package decision

import (
	"testing"

	"github.com/godwit-dev/godwit"
)

// TestRemediesOfABlockedPlan: a run that tries every object is refused like any other
// while something stands in its way, unless that is what the dry run is about.
func TestRemediesOfABlockedPlan(t *testing.T) {
	const try = "try every object"
	incomplete := []godwit.Finding{{Severity: godwit.Warns, Reason: ReasonPreflightIncomplete, Fix: godwit.Do(try)}, {Severity: godwit.Warns, Reason: ReasonAdmissionMutates, Fix: godwit.Do("migrate")}}
	cases := map[string]struct {
		blockers []*godwit.Reason
		want     string
	}{
		"nothing":               {nil, try},
		"a denial":              {[]*godwit.Reason{ReasonAdmissionDenied}, try},
		"a server that waits":   {[]*godwit.Reason{ReasonServerLeaseStale}, try},
		"another migrator":      {[]*godwit.Reason{ReasonMigrationInProgress}, "first do what MigrationInProgress asks for; then " + try},
		"two permissions, more": {[]*godwit.Reason{ReasonForbidden, ReasonForbidden, ReasonCRDKeepsChanging}, "first do what CRDKeepsChanging and Forbidden asks for; then " + try},
	}
	for name, tc := range cases {
		var blockers []godwit.Finding
		for _, reason := range tc.blockers {
			blockers = append(blockers, godwit.Finding{Reason: reason})
		}
		got := requireBlockersFixed(incomplete, blockers)
		if got[0].Fix.String() != tc.want || got[1].Fix.String() != "migrate" {
			t.Errorf("%s: %q, want %q", name, got[0].Fix, tc.want)
		}
		if incomplete[0].Fix.String() != try {
			t.Fatalf("%s: the warnings that were given are changed", name)
		}
	}
}
