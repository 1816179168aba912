package crdmigration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/walk"
)

func counted(c godwit.Counts) crdmigrator.Report {
	return crdmigrator.Report{Storage: walk.Report{Counts: c, Complete: true}}
}

func TestJudge(t *testing.T) {
	silent := crdmigrator.Server{Name: "apiserver-1"}
	blockedBy := func(reasons ...string) error {
		e := &crdmigrator.BlockedError{CRD: "a.example.com"}
		for _, r := range reasons {
			e.Blockers = append(e.Blockers, godwit.Blocker{Reason: r, Message: "m", Remedy: "r"})
		}
		return e
	}
	for reason, test := range map[string]struct {
		spec       v1alpha1.CRDMigrationSpec
		report     crdmigrator.Report
		err        error
		conflicted int
		want       string // reason
		is         string // of Ready, Reconciling, Stalled: those that are True
		blocked    int
	}{
		"nothing is left":                 {report: counted(godwit.Counts{Migrated: 3}), want: v1alpha1.ReasonSucceeded, is: "Ready"},
		"and nothing was to be trimmed":   {spec: v1alpha1.CRDMigrationSpec{Trim: new(false)}, report: counted(godwit.Counts{Migrated: 3}), want: v1alpha1.ReasonNotTrimmed, is: "Ready"},
		"objects were not to be written":  {spec: v1alpha1.CRDMigrationSpec{Phases: []v1alpha1.Phase{"CleanupManagedFields"}}, report: counted(godwit.Counts{Skipped: 3}), want: v1alpha1.ReasonNotTrimmed, is: "Ready"},
		"servers adopt":                   {err: &crdmigrator.NotSettledError{Servers: []crdmigrator.Server{silent}}, want: v1alpha1.ReasonSettling, is: "Reconciling"},
		"a server is silent":              {err: &crdmigrator.NotSettledError{Servers: []crdmigrator.Server{silent}, Silent: []crdmigrator.Server{silent}}, want: v1alpha1.ReasonSettling, is: "Reconciling", blocked: 1},
		"a right is missing":              {err: blockedBy(crdmigrator.ReasonForbidden), want: v1alpha1.ReasonBlocked, is: "Stalled", blocked: 1},
		"another migrator ends by itself": {err: blockedBy(crdmigrator.ReasonMigrationInProgress), want: v1alpha1.ReasonBlocked, is: "Reconciling", blocked: 1},
		"another migrator, and a right":   {err: blockedBy(crdmigrator.ReasonMigrationInProgress, crdmigrator.ReasonForbidden), want: v1alpha1.ReasonBlocked, is: "Stalled", blocked: 2},
		"no such definition":              {err: fmt.Errorf("%w: a", crdmigrator.ErrNotFound), want: v1alpha1.ReasonCRDNotFound, is: "Stalled"},
		"suspended":                       {err: fmt.Errorf("page: %w", errSuspended), want: v1alpha1.ReasonSuspended},
		"the definition changed":          {err: fmt.Errorf("%w: a", crdmigrator.ErrChanged), want: v1alpha1.ReasonRetrying, is: "Reconciling"},
		"the API server is away":          {err: errors.New("connection refused"), want: v1alpha1.ReasonFailed, is: "Reconciling"},
		"objects are not listed for now": {err: fmt.Errorf("migrate: %w", &crdmigrator.UnlistedError{Reason: crdmigrator.ReasonThrottled}),
			want: v1alpha1.ReasonObjectsUnlisted, is: "Reconciling"},
		"objects may not be listed": {err: &crdmigrator.UnlistedError{Reason: crdmigrator.ReasonForbidden}, want: v1alpha1.ReasonBlocked, is: "Stalled", blocked: 1},
		"objects can't be read":     {err: &crdmigrator.UnlistedError{Reason: crdmigrator.ReasonUnreadableObjects}, want: v1alpha1.ReasonBlocked, is: "Stalled", blocked: 1},
		"others wrote":              {report: counted(godwit.Counts{Deferred: 1}), conflicted: 1, want: v1alpha1.ReasonRetrying, is: "Reconciling"},
		"others write without end":  {report: counted(godwit.Counts{Deferred: 1}), conflicted: notConverging, want: v1alpha1.ReasonNotConverging, is: "Stalled"},
		"objects are refused":       {report: counted(godwit.Counts{Failed: 1, Deferred: 1}), want: v1alpha1.ReasonObjectsFailed, is: "Stalled"},
		"managedFields are left": {report: crdmigrator.Report{Trimmed: true, ManagedFields: crdmigrator.Tally{Counts: godwit.Counts{Failed: 1}}},
			want: v1alpha1.ReasonPartial, is: "Stalled"},
	} {
		t.Run(reason, func(t *testing.T) {
			v := judge(test.spec, test.report, test.err, test.conflicted)
			m := &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
			v.apply(m)
			if v.reason != test.want || v.message == "" {
				t.Errorf("reason %s, message %q, want %s and some words", v.reason, v.message, test.want)
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

// TestMessageNamesTheWebhook: whoever reads the condition learns whom to call.
func TestMessageNamesTheWebhook(t *testing.T) {
	failed := func(names ...string) (list []godwit.Failure) {
		for i, name := range names {
			list = append(list, godwit.Failure{Name: fmt.Sprint("w-", i), Reason: fmt.Sprintf(
				"10 attempts: Internal error occurred: failed calling webhook %q: failed to call webhook: the server is currently unable to handle the request", name)})
		}
		return list
	}
	counts := godwit.Counts{Failed: 3, Migrated: 7}
	storage := counted(counts)
	storage.Storage.Failures = failed("b.example.com", "a.example.com", "b.example.com")
	const want = "because of webhook a.example.com, webhook b.example.com"
	if v := judge(v1alpha1.CRDMigrationSpec{}, storage, nil, 0); !v.stalled || !strings.Contains(v.message, want) {
		t.Errorf("stalled %v, message %q, want Stalled %s", v.stalled, v.message, want)
	}
	fields := counted(godwit.Counts{Migrated: 10})
	fields.ManagedFields = crdmigrator.Tally{Counts: counts, Failures: failed("b.example.com", "a.example.com")}
	if v := judge(v1alpha1.CRDMigrationSpec{}, fields, nil, 0); !v.stalled || !strings.Contains(v.message, want) {
		t.Errorf("managedFields: stalled %v, message %q, want Stalled %s", v.stalled, v.message, want)
	}
}

// A message that changes with every look would be a write of the status each time.
func TestMessagesHaveNoTimes(t *testing.T) {
	one := judge(v1alpha1.CRDMigrationSpec{}, crdmigrator.Report{}, &crdmigrator.NotSettledError{Wait: 70 * time.Second}, 0)
	other := judge(v1alpha1.CRDMigrationSpec{}, crdmigrator.Report{}, &crdmigrator.NotSettledError{Wait: 10 * time.Second}, 0)
	if one.message != other.message {
		t.Errorf("%q becomes %q", one.message, other.message)
	}
}

func TestPause(t *testing.T) {
	for reason, test := range map[string]struct {
		v         verdict
		err       error
		unsettled int
		want      time.Duration
	}{
		"done":                              {v: verdict{ready: true}, want: 0},
		"suspended":                         {v: suspended(), want: 0},
		"no definition: its creation tells": {v: verdict{reason: v1alpha1.ReasonCRDNotFound}, unsettled: 1, want: 0},
		"servers settle":                    {err: &crdmigrator.NotSettledError{Wait: time.Minute}, want: lookAgain},
		"servers have almost settled":       {err: &crdmigrator.NotSettledError{Wait: time.Millisecond}, want: time.Second},
		"changed":                           {err: crdmigrator.ErrChanged, v: verdict{reason: v1alpha1.ReasonRetrying}, unsettled: 1, want: time.Second},
		"changed, and does not end":         {err: crdmigrator.ErrChanged, v: verdict{reason: v1alpha1.ReasonRetrying}, unsettled: 100, want: waitForOthers},
		"conflicts":                         {v: verdict{reason: v1alpha1.ReasonRetrying}, unsettled: 1, want: waitForOthers},
		"not listed for now":                {v: verdict{reason: v1alpha1.ReasonObjectsUnlisted}, unsettled: 1, want: firstRetry},
		"failed once":                       {v: verdict{reason: v1alpha1.ReasonFailed}, unsettled: 1, want: firstRetry},
		"failed three times":                {v: verdict{reason: v1alpha1.ReasonFailed}, unsettled: 3, want: 4 * firstRetry},
		"failed for days":                   {v: verdict{reason: v1alpha1.ReasonObjectsFailed}, unsettled: 1000, want: maxRetry},
	} {
		if got := (&work{unsettled: test.unsettled}).pause(test.v, test.err); got != test.want {
			t.Errorf("%s: %s, want %s", reason, got, test.want)
		}
	}
}

func TestOnlyNewsAreAnnounced(t *testing.T) {
	failed := verdict{stalled: true, reason: v1alpha1.ReasonObjectsFailed, message: strings.Repeat("ß", 2000)}
	m := &v1alpha1.CRDMigration{}
	first := announcementFor(&m.Status, failed)
	if first.eventType != "Warning" || first.reason != v1alpha1.ReasonObjectsFailed || len(first.note) > 1024 {
		t.Errorf("%s %s with %d bytes", first.eventType, first.reason, len(first.note))
	}
	failed.apply(m)
	if again := announcementFor(&m.Status, failed); again.reason != "" {
		t.Errorf("the same once more is announced as %s", again.reason)
	}
	if now := announcementFor(&m.Status, succeeded(v1alpha1.CRDMigrationSpec{}, "v2")); now.eventType != "Normal" || now.reason != v1alpha1.ReasonSucceeded {
		t.Errorf("success is announced as %+v", now)
	}
	if on := announcementFor(&m.Status, verdict{working: true, reason: v1alpha1.ReasonRetrying}); on.reason != "" {
		t.Errorf("another pass is announced as %s", on.reason)
	}
}

// TestNotConvergingIsAnnouncedEachHour: the API server keeps an event for an hour.
func TestNotConvergingIsAnnouncedEachHour(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	m := &v1alpha1.CRDMigration{}
	w := &work{Reconciler: &Reconciler{Recorder: recorder}, status: &status{written: m}}
	v := judge(v1alpha1.CRDMigrationSpec{}, counted(godwit.Counts{Deferred: 1}), nil, notConverging)
	begun := time.Now()
	for pass := range 2*60 + 1 { // two hours, with a pass each minute
		w.announce(&m.Status, v, begun.Add(time.Duration(pass)*time.Minute))
		v.apply(m)
	}
	if got := len(recorder.Events); got != 3 {
		t.Errorf("%d events in two hours, want one at the beginning and one after each hour", got)
	}
}

// TestAnEndNamesTheVersion: the storage version of the CRD may be another one when
// the event is read.
func TestAnEndNamesTheVersion(t *testing.T) {
	report := counted(godwit.Counts{Migrated: 3})
	report.Checkpoint.StorageVersion = "v2"
	partial := report
	partial.ManagedFields.Counts.Failed = 1
	for reason, v := range map[string]verdict{
		"succeeded":              judge(v1alpha1.CRDMigrationSpec{}, report, nil, 0),
		"not trimmed":            judge(v1alpha1.CRDMigrationSpec{Trim: new(false)}, report, nil, 0),
		"managedFields are left": judge(v1alpha1.CRDMigrationSpec{}, partial, nil, 0),
	} {
		if note := announcementFor(&v1alpha1.CRDMigrationStatus{}, v).note; !strings.Contains(note, "stored at the storage version v2") {
			t.Errorf("%s: the event says %q", reason, note)
		}
	}
}
