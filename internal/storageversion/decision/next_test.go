package decision

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/walk"
)

func complete(c godwit.Counts) Report {
	return Report{Storage: walk.Report{Counts: c, Complete: true}}
}

func TestNext(t *testing.T) {
	one, two := Server{Name: "apiserver-1"}, Server{Name: "apiserver-2"}
	plan := Plan{Name: "widgets.example.com", StorageVersion: "v2"}
	refused := blockerOf(ReasonForbidden)
	others := blockerOf(ReasonMigrationInProgress)
	failed := complete(godwit.Counts{Failed: 1, Deferred: 1})
	trimmed := complete(godwit.Counts{Migrated: 3})
	trimmed.Trimmed = true
	fields := trimmed
	fields.ManagedFields = Tally{Counts: godwit.Counts{Failed: 1}}
	away := errors.New("connection refused")
	unlisted := func(reason *godwit.Reason) error {
		return fmt.Errorf("migrate: %w", &UnlistedError{CRD: plan.Name, Finding: godwit.Finding{Reason: reason}})
	}
	for reason, test := range map[string]struct {
		plan    func(*Plan)
		report  Report
		err     error
		history History
		want    Step // without its message and error
		says    string
		isError bool
	}{
		"all objects are migrated": {
			report: trimmed, history: History{Conflicts: 3, Unfinished: 3},
			want: Step{Action: ActionDone, Reason: ReasonSucceeded}, says: "every object is stored at the storage version v2, and status.storedVersions has no other version",
		},
		"the plan leaves nothing to do": {
			plan: func(p *Plan) { p.Trimmed = true },
			want: Step{Action: ActionDone, Reason: ReasonSucceeded}, says: "stored at the storage version v2",
		},
		"the trim is switched off": {
			report: complete(godwit.Counts{Migrated: 3}),
			want:   Step{Action: ActionDone, Reason: ReasonNotTrimmed}, says: "storage version v2; the trim is switched off",
		},
		"the rewrite is skipped": {
			plan: func(p *Plan) { p.SkipPhases = []Phase{StorageVersionMigrationPhase} }, report: complete(godwit.Counts{Skipped: 3}),
			want: Step{Action: ActionDone, Reason: ReasonNotTrimmed}, says: "StorageVersionMigration is skipped",
		},
		"only time is waited for": {
			err: &NotSettledError{Wait: time.Minute}, history: History{Conflicts: 2, Unfinished: 7},
			want: Step{Action: ActionWait, After: 5 * time.Second, Reason: ReasonSettling, History: History{Conflicts: 2}}, says: "writing begins when the settle time has passed since the change",
		},
		"the time is almost over":   {err: &NotSettledError{Wait: 400 * time.Millisecond}, want: Step{Action: ActionWait, After: 400 * time.Millisecond, Reason: ReasonSettling}},
		"the time is over by clock": {err: &NotSettledError{Wait: -time.Second}, want: Step{Action: ActionWait, After: 100 * time.Millisecond, Reason: ReasonSettling}},
		"servers are about to adopt": {
			err:  fmt.Errorf("run: %w", &NotSettledError{Servers: []Server{two, one}, Wait: 3 * time.Second}),
			want: Step{Action: ActionWait, After: 3 * time.Second, Reason: ReasonSettling}, says: "apiserver-1, apiserver-2",
		},
		"a lease is stale": {
			err: &NotSettledError{Servers: []Server{one, two}, Stale: []Server{two}, Wait: 5 * time.Second},
			want: Step{Action: ActionWait, After: 5 * time.Second, Reason: ReasonSettling, Blockers: []godwit.Finding{{
				Reason: ReasonServerLeaseStale, Message: "API server apiserver-2 has a stale lease",
				Fix: godwit.Do("bring it back").Or(godwit.Do("if it is gone for good, delete its lease",
					godwit.Delete{Object: godwit.Object{Resource: "lease", Namespace: "kube-system", Name: "apiserver-2"}})),
			}}}, says: "stale lease may still write the old version: apiserver-2; bring each back, or delete its lease",
		},
		"a permission is missing": {
			err: &BlockedError{CRD: plan.Name, Blockers: []godwit.Finding{refused}}, isError: true,
			want: Step{Action: ActionStalled, After: 10 * time.Second, Reason: ReasonBlocked, Blockers: []godwit.Finding{refused}, History: History{Unfinished: 1}},
		},
		"the CRD is deleted before the run": {
			err:  fmt.Errorf("%w: %w", ErrChanged, &BlockedError{CRD: plan.Name, Blockers: []godwit.Finding{refused}}),
			want: Step{Action: ActionStalled, After: 10 * time.Second, Reason: ReasonBlocked, Blockers: []godwit.Finding{refused}, History: History{Unfinished: 1}},
		},
		"another migrator is at work": {
			err:  &BlockedError{CRD: plan.Name, Blockers: []godwit.Finding{others}},
			want: Step{Action: ActionRetry, After: 30 * time.Second, Reason: ReasonBlocked, Blockers: []godwit.Finding{others}, History: History{Unfinished: 1}},
		},
		"another migrator, and a permission is missing": {
			err: &BlockedError{CRD: plan.Name, Blockers: []godwit.Finding{others, refused}}, isError: true,
			want: Step{Action: ActionStalled, After: 10 * time.Second, Reason: ReasonBlocked, Blockers: []godwit.Finding{others, refused}, History: History{Unfinished: 1}},
		},
		"the list is throttled": {
			err: unlisted(ReasonThrottled), history: History{Unfinished: 1}, isError: true,
			want: Step{Action: ActionUnknown, After: 20 * time.Second, Reason: ReasonObjectsUnlisted, History: History{Unfinished: 2}}, says: ReasonThrottled.Name,
		},
		"the list is forbidden": {
			err: unlisted(ReasonForbidden), isError: true,
			want: Step{Action: ActionUnknown, After: 10 * time.Second, Reason: ReasonBlocked, Blockers: []godwit.Finding{{Reason: ReasonForbidden}}, History: History{Unfinished: 1}},
		},
		"objects can't be read": {
			err: unlisted(ReasonUnreadableObjects), isError: true,
			want: Step{Action: ActionStalled, After: 10 * time.Second, Reason: ReasonBlocked, Blockers: []godwit.Finding{{Reason: ReasonUnreadableObjects}}, History: History{Unfinished: 1}},
		},
		"the CRD is new": {
			err:  &UnlistedError{CRD: plan.Name, Finding: godwit.Finding{Reason: ReasonNotServed}, Starting: true},
			want: Step{Action: ActionUnknown, After: time.Second, Reason: ReasonRetrying, History: History{Unfinished: 1}}, says: "does not serve widgets.example.com yet",
		},
		"there is no such CRD":  {err: fmt.Errorf("%w: a", ErrNotFound), want: Step{Action: ActionStalled, Reason: ReasonCRDNotFound, History: History{Unfinished: 1}}},
		"the CRD changed":       {err: fmt.Errorf("%w: a", ErrChanged), want: Step{Action: ActionReplan, After: time.Second, Reason: ReasonRetrying, History: History{Unfinished: 1}}},
		"the label was removed": {err: fmt.Errorf("%w: a", ErrOutOfScope), want: Step{Action: ActionReplan, After: time.Second, Reason: ReasonRetrying, History: History{Unfinished: 1}}},
		"the CRD keeps changing": {
			err: ErrChanged, history: History{Unfinished: 100},
			want: Step{Action: ActionReplan, After: 30 * time.Second, Reason: ReasonRetrying, History: History{Unfinished: 101}},
		},
		"the API server is away": {
			err: away, history: History{Conflicts: 2}, isError: true,
			want: Step{Action: ActionRetry, After: 10 * time.Second, Reason: ReasonFailed, History: History{Conflicts: 2, Unfinished: 1}}, says: "connection refused",
		},
		"the API server is away for long": {
			err: away, history: History{Unfinished: 2}, isError: true,
			want: Step{Action: ActionRetry, After: 40 * time.Second, Reason: ReasonFailed, History: History{Unfinished: 3}},
		},
		"the API server is away for days": {
			err: away, history: History{Unfinished: 1000}, isError: true,
			want: Step{Action: ActionRetry, After: 10 * time.Minute, Reason: ReasonFailed, History: History{Unfinished: 1001}},
		},
		"other clients changed objects": {
			report: complete(godwit.Counts{Deferred: 1}),
			want:   Step{Action: ActionRetry, After: 30 * time.Second, Reason: ReasonRetrying, History: History{Conflicts: 1, Unfinished: 1}}, says: "other clients",
		},
		"other clients keep changing objects": {
			report: complete(godwit.Counts{Deferred: 1}), history: History{Conflicts: 4, Unfinished: 4},
			want: Step{Action: ActionStalled, After: 30 * time.Second, Reason: ReasonNotConverging, History: History{Conflicts: 5, Unfinished: 5}}, says: "at least 5 passes",
		},
		"objects are refused": {
			report: failed, history: History{Conflicts: 4, Unfinished: 4}, isError: true,
			want: Step{Action: ActionStalled, After: 160 * time.Second, Reason: ReasonObjectsFailed, History: History{Unfinished: 5}},
		},
		"managedFields are left": {
			report: fields, isError: true,
			want: Step{Action: ActionStalled, After: 10 * time.Second, Reason: ReasonPartial, History: History{Unfinished: 1}}, says: "storage version v2",
		},
	} {
		t.Run(reason, func(t *testing.T) {
			plan := plan
			if test.plan != nil {
				test.plan(&plan)
			}
			got := Next(plan, test.report, test.err, test.history)
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Step{}, "Message", "Err")); diff != "" {
				t.Errorf("another step (-want +got):\n%s", diff)
			}
			if got.Message == "" || !strings.Contains(got.Message, test.says) {
				t.Errorf("message %q, want one with %q", got.Message, test.says)
			}
			if (got.Err != nil) != test.isError || test.err != nil && got.Err != nil && !errors.Is(got.Err, test.err) && !errors.Is(test.err, got.Err) {
				t.Errorf("error %v, want one: %v", got.Err, test.isError)
			}
			if want := got.Action == ActionStalled || test.want.Action == ActionUnknown && len(test.want.Blockers) > 0; got.Stalled() != want {
				t.Errorf("stalled: %v, want %v", got.Stalled(), want)
			}
		})
	}
}

// blockerOf is a blocker of one reason.
func blockerOf(reason *godwit.Reason) godwit.Finding {
	return godwit.Finding{Reason: reason, Message: "m", Fix: godwit.Do("r")}
}

// TestNextIsNotDoneWhileAnythingIsUnknown: for each reason for which objects are not listed, the next step is not "done".
func TestNextIsNotDoneWhileAnythingIsUnknown(t *testing.T) {
	for _, reason := range []*godwit.Reason{
		ReasonForbidden, ReasonNotEstablished, ReasonStorageVersionNotServed, ReasonNoStorageVersion, ReasonNotServed, ReasonThrottled,
		ReasonServerError, ReasonTimeout, ReasonListRefused, ReasonWebhookUnavailable, ReasonConversionFailed, ReasonUnreadableObjects,
	} {
		for _, starting := range []bool{false, true} {
			err := &UnlistedError{CRD: "widgets.example.com", Finding: godwit.Finding{Reason: reason}, Starting: starting}
			s := Next(Plan{Trimmed: true, StorageVersion: "v2"}, Report{Trimmed: true}, err, History{})
			if s.Action != ActionUnknown && s.Action != ActionStalled || s.After == 0 {
				t.Errorf("%s: %s after %v, want Unknown or Stalled, and another look", reason, s.Action, s.After)
			}
			if !s.Stalled() && !starting && !err.Transient() {
				t.Errorf("%s does not end by itself, and no user learns of it", reason)
			}
		}
	}
}

// TestNextNamesTheWebhook: a user who reads the message learns whom to call.
func TestNextNamesTheWebhook(t *testing.T) {
	failed := func(names ...string) (list []godwit.Failure) {
		for i, name := range names {
			list = append(list, godwit.Failure{Name: fmt.Sprint("w-", i), Finding: godwit.Finding{Reason: ReasonWebhookUnavailable}, Err: fmt.Errorf(
				"10 attempts: Internal error occurred: failed calling webhook %q: failed to call webhook: the server is currently unable to handle the request", name)})
		}
		return list
	}
	counts := godwit.Counts{Failed: 3, Migrated: 7}
	storage := complete(counts)
	storage.Storage.Failures = failed("b.example.com", "a.example.com", "b.example.com")
	fields := complete(godwit.Counts{Migrated: 10})
	fields.ManagedFields = Tally{Counts: counts, Failures: failed("b.example.com", "a.example.com")}
	const want = "because of webhook a.example.com, webhook b.example.com"
	for reason, report := range map[string]Report{"objects": storage, "managedFields": fields} {
		if s := Next(Plan{}, report, nil, History{}); s.Action != ActionStalled || !strings.Contains(s.Message, want) {
			t.Errorf("%s: %s, message %q, want Stalled %s", reason, s.Action, s.Message, want)
		}
	}
}

// TestNextMessagesHaveNoTimes: a message that changes with every look would be a write
// of a status each time.
func TestNextMessagesHaveNoTimes(t *testing.T) {
	var said []string
	for _, wait := range []time.Duration{70 * time.Second, 10 * time.Second} {
		said = append(said, Next(Plan{}, Report{}, &NotSettledError{Wait: wait}, History{}).Message)
	}
	for passes := notConverging; passes < 10; passes++ {
		said = append(said, Next(Plan{}, complete(godwit.Counts{Deferred: int64(passes)}), nil, History{Conflicts: passes}).Message)
	}
	if got := slices.Compact(said); len(got) != 2 {
		t.Errorf("messages %q, want one for each meaning", got)
	}
}
