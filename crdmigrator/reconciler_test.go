package crdmigrator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/walk"
)

// TestWaitingIsReportedOncePerCause: also where the reconciler waits for time alone, the most common and longest wait.
func TestWaitingIsReportedOncePerCause(t *testing.T) {
	var said []string
	logger := funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{})
	ctx := log.IntoContext(t.Context(), logger)
	r := &CRDMigrator{memory: map[string]*memory{}}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	one := []decision.Server{{Name: "apiserver-1"}}
	others := &decision.BlockedError{Blockers: []godwit.Finding{{Reason: decision.ReasonMigrationInProgress, Message: "by others"}}}
	for _, why := range []error{
		&decision.NotSettledError{Wait: 75 * time.Second}, &decision.NotSettledError{Wait: 70 * time.Second},
		&decision.NotSettledError{Servers: one}, &decision.NotSettledError{Servers: one},
		&decision.NotSettledError{Wait: 60 * time.Second},
		others, others,
	} {
		if _, err := r.resultOf(ctx, &profile{}, crd, pass{err: why}); err != nil {
			t.Errorf("%v is an error: %v", why, err)
		}
	}
	want := []string{"under way for 1m15s", "API server apiserver-1", "under way for 1m0s", "by others"}
	if len(said) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(said), len(want), strings.Join(said, "\n"))
	}
	for i := range want {
		if !strings.Contains(said[i], want[i]) {
			t.Errorf("line %d is %s, want one with %q", i, said[i], want[i])
		}
	}
}

// TestMigratedCountsWhatTheCacheOffered: otherwise the message of a migration by UseCache would report no writes.
func TestMigratedCountsWhatTheCacheOffered(t *testing.T) {
	for reason, test := range map[string]struct {
		report decision.Report
		want   bool
	}{
		"the cache offered all": {decision.Report{Trimmed: true, Storage: walk.Report{Counts: godwit.Counts{Skipped: 3}}, Candidates: walk.Report{Counts: godwit.Counts{Migrated: 3}}}, true},
		"there was no cache":    {decision.Report{Trimmed: true, Storage: walk.Report{Counts: godwit.Counts{Migrated: 3}}}, false},
	} {
		var said []string
		ctx := log.IntoContext(t.Context(), funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{}))
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}
		c := fake.NewClientBuilder().WithScheme(schemeWith(t, apiextensionsv1.AddToScheme)).WithObjects(crd).Build()
		r := &CRDMigrator{Client: c, clock: clock.RealClock{}, memory: map[string]*memory{}}
		if _, err := r.resultOf(ctx, &profile{observed: ObservedGenerationAnnotation}, crd, pass{report: test.report}); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		if len(said) != 1 || strings.Contains(said[0], "candidates") != test.want {
			t.Errorf("%s: logged %q, want one line that tells of candidates: %v", reason, said, test.want)
		}
	}
}

// TestEventNamesTheVersionThatWasStored: the CRD was read before the run, which
// reads it again and finds another storage version.
func TestEventNamesTheVersionThatWasStored(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v2", Storage: true}}
	recorder := events.NewFakeRecorder(1)
	r := &CRDMigrator{
		Client:   fake.NewClientBuilder().WithScheme(schemeWith(t, apiextensionsv1.AddToScheme)).WithObjects(crd).Build(),
		Recorder: recorder, clock: clock.RealClock{}, memory: map[string]*memory{},
	}
	report := decision.Report{Trimmed: true, Checkpoint: evidence.Checkpoint{StorageVersion: "v3"}}
	if _, err := r.resultOf(t.Context(), &profile{observed: ObservedGenerationAnnotation}, crd, pass{report: report}); err != nil {
		t.Fatal(err)
	}
	if event := <-recorder.Events; !strings.Contains(event, "stored at v3") {
		t.Errorf("the event is %q, want the version of the run, v3", event)
	}
}

// TestEachFailureIsLogged: the error names the first alone, and who repairs one
// object after the other wants to see all.
func TestEachFailureIsLogged(t *testing.T) {
	var said []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{}))
	report := decision.Report{
		Storage: walk.Report{Counts: godwit.Counts{Failed: 2}, Failures: []godwit.Failure{
			{Namespace: "shop", Name: "goose", Finding: godwit.Finding{Reason: decision.ReasonAdmissionDenied, Message: "denied"}}, {Namespace: "shop", Name: "duck", Finding: godwit.Finding{Reason: decision.ReasonObjectInvalid, Message: "invalid"}},
		}},
		ManagedFields: decision.Tally{Counts: godwit.Counts{Failed: 1}, Failures: []godwit.Failure{{Namespace: "shop", Name: "gull", Finding: godwit.Finding{Reason: decision.ReasonObjectTooLarge, Message: "too large"}}}},
	}
	r := &CRDMigrator{clock: clock.RealClock{}, memory: map[string]*memory{}}
	if _, err := r.resultOf(ctx, &profile{}, &apiextensionsv1.CustomResourceDefinition{}, pass{report: report}); err == nil {
		t.Error("a pass with failures reports success")
	}
	for _, want := range []string{
		`"name"="goose" "reason"="AdmissionDenied" "message"="denied"`,
		`"name"="duck" "reason"="ObjectInvalid" "message"="invalid"`,
		`"name"="gull" "reason"="ObjectTooLarge" "message"="too large"`,
	} {
		if !slices.ContainsFunc(said, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("logged %q, want a line with %s", said, want)
		}
	}
}

// TestNotConvergingIsReportedEachHour: the API server keeps an event for an hour.
func TestNotConvergingIsReportedEachHour(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	now := clocktesting.NewFakePassiveClock(time.Now())
	r := &CRDMigrator{Recorder: recorder, clock: now, memory: map[string]*memory{}}
	report := decision.Report{Storage: walk.Report{Counts: godwit.Counts{Deferred: 1}}}
	const notConverging = 5          // passes, as in package storageversion
	for range 2*60 + notConverging { // two hours, with a pass each minute
		if result, err := r.resultOf(t.Context(), &profile{}, &apiextensionsv1.CustomResourceDefinition{}, pass{report: report}); err != nil || result.RequeueAfter == 0 {
			t.Fatalf("%+v, %v", result, err)
		}
		now.SetTime(now.Now().Add(time.Minute))
	}
	if got := len(recorder.Events); got != 3 {
		t.Errorf("%d events in two hours, want one after %d passes and one after each hour", got, notConverging)
	}
}

// forgetful is a migrator that tells what it is to forget.
type forgetful struct {
	migrator
	forgot []string
}

func (f *forgetful) Forget(crd string) { f.forgot = append(f.forgot, crd) }

// TestDeletedCRDIsForgotten: a process that stays sees many CRDs come and go.
func TestDeletedCRDIsForgotten(t *testing.T) {
	const name = "widgets.example.com"
	c := fake.NewClientBuilder().WithScheme(schemeWith(t, apiextensionsv1.AddToScheme)).Build()
	r := &CRDMigrator{Client: c, APIReader: c, Selector: Selector{Group: "example.com"}}
	if err := r.setup(c.Scheme(), &rest.Config{}); err != nil {
		t.Fatal(err)
	}
	var migrates forgetful
	r.scope.selected.migrator = &migrates
	r.memoryOf(name)
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(migrates.forgot, []string{name}) || len(r.memory) != 0 {
		t.Errorf("the migrator forgot %v, and %d memories are left of a CRD that is gone", migrates.forgot, len(r.memory))
	}
}
