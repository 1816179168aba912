package crdmigration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// TestOutcomeOf renders each kind of step into the conditions. What makes a step is
// storageversion's table.
func TestOutcomeOf(t *testing.T) {
	blocker := godwit.Finding{Reason: decision.ReasonForbidden, Message: "m", Fix: godwit.Do("r")}
	for reason, test := range map[string]struct {
		step    decision.Step
		is      string // of Ready, Reconciling, Stalled: those that are True
		blocked int
	}{
		"done":                         {step: decision.Step{Action: decision.ActionDone, Reason: decision.ReasonSucceeded}, is: "Ready"},
		"waits":                        {step: decision.Step{Action: decision.ActionWait, Reason: decision.ReasonSettling}, is: "Reconciling"},
		"waits, a lease is stale":      {step: decision.Step{Action: decision.ActionWait, Reason: decision.ReasonSettling, Blockers: []godwit.Finding{blocker}}, is: "Reconciling", blocked: 1},
		"plans again":                  {step: decision.Step{Action: decision.ActionReplan, Reason: decision.ReasonRetrying}, is: "Reconciling"},
		"tries again":                  {step: decision.Step{Action: decision.ActionRetry, Reason: decision.ReasonFailed}, is: "Reconciling"},
		"waits for another migrator":   {step: decision.Step{Action: decision.ActionRetry, Reason: decision.ReasonBlocked, Blockers: []godwit.Finding{blocker}}, is: "Reconciling", blocked: 1},
		"knows nothing for now":        {step: decision.Step{Action: decision.ActionUnknown, Reason: decision.ReasonObjectsUnlisted}, is: "Reconciling"},
		"knows nothing without a user": {step: decision.Step{Action: decision.ActionUnknown, Reason: decision.ReasonBlocked, Blockers: []godwit.Finding{blocker}}, is: "Stalled", blocked: 1},
		"is stalled":                   {step: decision.Step{Action: decision.ActionStalled, Reason: decision.ReasonObjectsFailed}, is: "Stalled"},
		"is stalled with two blockers": {step: decision.Step{Action: decision.ActionStalled, Reason: decision.ReasonBlocked, Blockers: []godwit.Finding{blocker, blocker}}, is: "Stalled", blocked: 2},
	} {
		t.Run(reason, func(t *testing.T) {
			test.step.Message = "because"
			o := outcomeOf(test.step)
			m := &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
			o.apply(m)
			if o.Reason != test.step.Reason.Name || o.Message != test.step.Message {
				t.Errorf("reason %s, message %q, want those of the step", o.Reason, o.Message)
			}
			var is []string
			for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
				c := meta.FindStatusCondition(m.Status.Conditions, kind)
				if c == nil || c.ObservedGeneration != 7 {
					t.Fatalf("condition %s is %+v", kind, c)
				}
				if c.Status == metav1.ConditionTrue {
					is = append(is, kind)
				}
			}
			if got := strings.Join(is, ","); got != test.is {
				t.Errorf("%s are True, want %s", got, test.is)
			}
			if got := kstatusOf(t, m); got != kstatusWhen[test.is] {
				t.Errorf("kstatus says %s, want %s", got, kstatusWhen[test.is])
			}
			if got := meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionBlocked); got != (test.blocked > 0) || len(m.Status.Blockers) != test.blocked {
				t.Errorf("Blocked: %v with %+v, want %d blockers", got, m.Status.Blockers, test.blocked)
			}
		})
	}
}

// TestNextOfTheManager: what ends a run for the manager's own reasons, and that the
// plan is kept only where the API servers settle.
func TestNextOfTheManager(t *testing.T) {
	for reason, test := range map[string]struct {
		err   error
		want  string // reason
		after time.Duration
		kept  bool
	}{
		"suspended":            {err: fmt.Errorf("page: %w", errSuspended), want: ReasonSuspended.Name},
		"another spec":         {err: fmt.Errorf("page: %w", errSpecChanged), want: decision.ReasonRetrying.Name, after: afterWithdrawal},
		"left the scope":       {err: fmt.Errorf("page: %w", errLeftScope), want: decision.ReasonRetrying.Name, after: afterWithdrawal},
		"the CRD changed":      {err: decision.ErrChanged, want: decision.ReasonRetrying.Name, after: time.Second},
		"the servers settle":   {err: &decision.NotSettledError{Wait: time.Minute}, want: decision.ReasonSettling.Name, after: 5 * time.Second, kept: true},
		"no CRD of this name":  {err: decision.ErrNotFound, want: decision.ReasonCRDNotFound.Name},
		"a complete pass ends": {want: decision.ReasonSucceeded.Name},
	} {
		w := &migration{plan: &decision.Plan{Trimmed: true}}
		o, after := w.next(*w.plan, decision.Report{}, test.err)
		if o.Reason != test.want || after != test.after || (w.plan != nil) != test.kept {
			t.Errorf("%s: %s after %s, plan kept: %v; want %s after %s, %v", reason, o.Reason, after, w.plan != nil, test.want, test.after, test.kept)
		}
	}
}

func TestOnlyChangesAreAnnounced(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	m := &v1alpha1.CRDMigration{}
	failed := outcome{Summary: status.Summary{State: status.StateStalled, Reason: decision.ReasonObjectsFailed.Name, Message: "refused"}}
	for name, test := range map[string]struct {
		outcome
		known bool // the status says so already
		want  string
	}{
		"stalled":               {outcome: failed, want: "Warning ObjectsFailed refused"},
		"the same again":        {outcome: failed, known: true},
		"ready":                 {outcome: outcome{Summary: status.Summary{State: status.StateReady, Reason: decision.ReasonSucceeded.Name}}, want: "Normal Succeeded "},
		"suspended":             {outcome: suspended(), want: "Normal Suspended spec.suspend is true; set it to false to resume"},
		"settling":              {outcome: outcomeOf(decision.Step{Action: decision.ActionWait, Reason: decision.ReasonSettling}), want: "Normal Settling "},
		"another pass":          {outcome: outcomeOf(decision.Step{Action: decision.ActionRetry, Reason: decision.ReasonRetrying})},
		"a pass that failed":    {outcome: outcomeOf(decision.Step{Action: decision.ActionRetry, Reason: decision.ReasonFailed}), want: "Warning Failed "},
		"objects being written": {outcome: migrating()},
	} {
		if test.known {
			test.apply(m)
		}
		test.announce(recorder, m, time.Time{}, time.Now())
		m.Status.Conditions = nil
		got := ""
		if len(recorder.Events) > 0 {
			got = <-recorder.Events
		}
		if got != test.want {
			t.Errorf("%s: announced as %q, want %q", name, got, test.want)
		}
	}
}

// TestNotConvergingIsAnnouncedEachHour: the API server keeps an event for an hour.
func TestNotConvergingIsAnnouncedEachHour(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	m := &v1alpha1.CRDMigration{}
	o := outcome{Summary: status.Summary{State: status.StateStalled, Reason: decision.ReasonNotConverging.Name, Message: "other clients"}}
	began, reported := time.Now(), time.Time{}
	for pass := range 2*60 + 1 { // two hours, with a pass each minute
		reported = o.announce(recorder, m, reported, began.Add(time.Duration(pass)*time.Minute))
		o.apply(m)
	}
	if got := len(recorder.Events); got != 3 {
		t.Errorf("%d events in two hours, want one at the beginning and one after each hour", got)
	}
}
