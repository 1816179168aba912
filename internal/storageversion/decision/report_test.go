package decision

import (
	"errors"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/walk"
)

func TestReportErrNamesTheGravest(t *testing.T) {
	failures := []godwit.Failure{{Namespace: "ns", Name: "goose", Finding: godwit.Finding{Reason: ReasonAdmissionDenied, Message: "denied"}}}
	for reason, test := range map[string]struct {
		report    Report
		wrong     bool
		conflicts bool
	}{
		"nothing is left":           {report: Report{Storage: walk.Report{Counts: godwit.Counts{Migrated: 3, Skipped: 1, Gone: 1}}}},
		"others wrote meanwhile":    {report: Report{Storage: walk.Report{Counts: godwit.Counts{Deferred: 1}, Failures: failures}}, wrong: true, conflicts: true},
		"a failure hides conflicts": {report: Report{Storage: walk.Report{Counts: godwit.Counts{Deferred: 1, Failed: 1}, Failures: failures}}, wrong: true},
		"managedFields were left":   {report: Report{Trimmed: true, ManagedFields: Tally{Counts: godwit.Counts{Deferred: 1}, Failures: failures}}, wrong: true},
		"conflicts are graver than managedFields": {
			report: Report{Storage: walk.Report{Counts: godwit.Counts{Deferred: 1}}, ManagedFields: Tally{Counts: godwit.Counts{Failed: 1}}}, wrong: true, conflicts: true},
		"candidates are visited again, so they don't count": {report: Report{Candidates: walk.Report{Counts: godwit.Counts{Failed: 1}}}},
	} {
		err := test.report.Err()
		if (err != nil) != test.wrong || errors.Is(err, ErrConflicts) != test.conflicts {
			t.Errorf("%s: %v, want an error: %v, ErrConflicts: %v", reason, err, test.wrong, test.conflicts)
		}
		if err != nil && len(test.report.Storage.Failures)+len(test.report.ManagedFields.Failures) > 0 && !strings.Contains(err.Error(), "ns/goose: denied") {
			t.Errorf("%s: %v does not name the object", reason, err)
		}
	}
}
