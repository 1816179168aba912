package storageversion

import (
	"errors"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

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

// TestForget: a process that stays sees many CRDs come and go.
func TestForget(t *testing.T) {
	m, err := New(&rest.Config{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com", UID: "1"}}
	m.settlement(Facts{CRD: crd, Now: time.Now()})
	if len(m.leases) != 1 {
		t.Fatalf("%d histories after a reading for one CRD", len(m.leases))
	}
	if m.Forget(crd.Name); len(m.leases) != 0 {
		t.Errorf("%d histories of a CRD that is gone", len(m.leases))
	}
}
