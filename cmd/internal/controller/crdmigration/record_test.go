package crdmigration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/walk"
)

func TestEstimate(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for reason, test := range map[string]struct {
		done, remaining int64
		want            time.Duration // after began; 0: none
	}{
		"a third in ten seconds":    {100, 200, 30 * time.Second},
		"nothing to go by":          {0, 200, 0},
		"nothing left":              {100, 0, 0},
		"the server does not count": {100, -1, 0},
	} {
		got := estimate(began, began.Add(10*time.Second), test.done, test.remaining)
		if (got == nil) != (test.want == 0) || got != nil && !got.Equal(&metav1.Time{Time: began.Add(test.want)}) {
			t.Errorf("%s: %v, want %s after the beginning", reason, got, test.want)
		}
	}
}

func TestRecord(t *testing.T) {
	began := time.Now()
	m := &v1alpha1.CRDMigration{}
	many := make([]godwit.Failure, 30)
	record(m, decision.Report{Storage: walk.Report{Counts: godwit.Counts{Migrated: 40}, Remaining: 60, Failures: many}}, began, began.Add(time.Second))
	if m.Status.Progress != "40/100" || len(m.Status.Failures) != maxSamples || m.Status.StartTime == nil || m.Status.EstimatedCompletion == nil {
		t.Errorf("status %+v", m.Status)
	}
	before := m.Status.DeepCopy()
	record(m, decision.Report{}, began.Add(time.Hour), began.Add(time.Hour))
	if diff := cmp.Diff(before, &m.Status); diff != "" {
		t.Errorf("a pass that ended before its first object changes what the one before has done:\n%s", diff)
	}
}

func TestProgressText(t *testing.T) {
	for reason, test := range map[string]struct {
		before          string
		done, remaining int64
		want            string
	}{
		"the first pass":                        {"", 40, 60, "40/100"},
		"the same pass, later":                  {"40/100", 70, 30, "70/100"},
		"another leader, which begins again":    {"70/100", 5, 95, "70/100"},
		"another leader, which is beyond":       {"70/100", 71, 29, "71/100"},
		"the server does not count":             {"", 40, -1, "40/?"},
		"it counted before":                     {"70/100", 5, -1, "70/?"},
		"it did not count before":               {"70/?", 5, 95, "70/100"},
		"a new pass after one with failures":    {"100/100", 5, 95, "100/100"},
		"users have created objects meanwhile":  {"100/100", 5, 145, "100/150"},
		"users have deleted objects meanwhile":  {"100/100", 5, 45, "50/50"},
		"a progress that another client wrote":  {"some", 5, 95, "5/100"},
		"all objects are deleted":               {"100/100", 0, 0, "0/0"},
		"a negative number of another client":   {"-7/100", 5, 95, "5/100"},
		"the end of a pass that began it again": {"70/100", 100, 0, "100/100"},
	} {
		if got := progressText(test.before, test.done, test.remaining); got != test.want {
			t.Errorf("%s: %q after %q, want %q", reason, got, test.before, test.want)
		}
	}
}

// TestProgressBeginsAgain with another checkpoint, and with none but it: a checkpoint that is saved again or removed says nothing of the
// progress.
func TestProgressBeginsAgain(t *testing.T) {
	checkpoint := func(resourceVersion, cursor string) evidence.Checkpoint {
		return evidence.Checkpoint{CRDUID: "a", Generation: 2, StorageVersion: "v2", ResourceVersion: resourceVersion, Cursor: cursor}
	}
	for reason, test := range map[string]struct {
		saved *v1alpha1.Checkpoint
		next  evidence.Checkpoint
		want  string
	}{
		"the first one":                    {nil, checkpoint("10", ""), ""},
		"saved again":                      {stored(checkpoint("10", "")), checkpoint("10", "x"), "7/9"},
		"an API server was late":           {stored(checkpoint("10", "x")), checkpoint("30", ""), ""},
		"a proof before the first list":    {nil, checkpoint("", ""), "7/9"},
		"removed at the end":               {stored(checkpoint("10", "x")), evidence.Checkpoint{}, "7/9"},
		"another list after that of none":  {stored(checkpoint("", "")), checkpoint("30", ""), ""},
		"the settle time is without proof": {stored(checkpoint("10", "x")), checkpoint("", ""), "7/9"},
	} {
		m := &v1alpha1.CRDMigration{Status: v1alpha1.CRDMigrationStatus{Progress: "7/9", Checkpoint: test.saved}}
		saveCheckpoint(m, test.next)
		if m.Status.Progress != test.want || (m.Status.Checkpoint == nil) != test.next.IsZero() {
			t.Errorf("%s: progress %q with checkpoint %+v, want %q", reason, m.Status.Progress, m.Status.Checkpoint, test.want)
		}
	}
}

func TestAnotherGenerationOfTheCRDStartsAgain(t *testing.T) {
	m := &v1alpha1.CRDMigration{Status: v1alpha1.CRDMigrationStatus{
		CRDUID: "a", CRDGeneration: 2, Progress: "5/5", Storage: &godwit.Counts{Migrated: 5},
		Checkpoint: &v1alpha1.Checkpoint{Cursor: "x"},
	}}
	describe(m, decision.Plan{UID: "a", Generation: 2, StorageVersion: "v2"})
	if m.Status.Progress != "5/5" {
		t.Errorf("the same generation of the CRD resets the status: %+v", m.Status)
	}
	m.Status.CompletionTime = &metav1.Time{}
	again := m.DeepCopy()
	describe(again, decision.Plan{UID: "a", Generation: 2, StorageVersion: "v2"})
	if again.Status.Progress != "" || again.Status.CompletionTime != nil || again.Status.Storage == nil {
		t.Errorf("a pass after a complete one has its progress: %+v", again.Status)
	}
	for _, next := range []decision.Plan{{UID: "a", Generation: 3}, {UID: types.UID("b"), Generation: 2}} {
		other := m.DeepCopy()
		describe(other, next)
		if other.Status.Progress != "" || other.Status.CompletionTime != nil || other.Status.Storage != nil {
			t.Errorf("%+v has the status of another generation or another CRD", next)
		}
		if other.Status.Checkpoint == nil {
			t.Error("the checkpoint is dropped; crdmigrator decides whether it is valid")
		}
	}
}

// TestKilledPassForAnotherSpecIsNotDone: the CRD is as the last complete pass left it, and the
// progress of a pass for another spec is written. The next manager must not take the end of the
// first for the end of the second.
func TestKilledPassForAnotherSpecIsNotDone(t *testing.T) {
	plan := decision.Plan{UID: "a", Generation: 2, State: decision.Clean}
	m := &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	w := &migration{}
	describe(m, plan)
	ready := outcome{Summary: status.Summary{State: status.StateReady, Reason: decision.ReasonSucceeded.Name, Message: "done"}}
	complete(m, decision.Report{}, ready, time.Now())
	ready.apply(m)
	if !w.isUnchanged(m, plan) {
		t.Fatalf("a pass that ended well is not done: %+v", m.Status)
	}
	m.Generation = 2
	if w.isUnchanged(m, plan) {
		t.Error("another spec is done before a pass")
	}
	describe(m, plan)
	migrating().apply(m)
	if w.isUnchanged(m, plan) {
		t.Errorf("a pass under way is done: %+v", m.Status)
	}
}
