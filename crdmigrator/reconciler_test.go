package crdmigrator

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr/funcr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/walk"
)

func TestNotesFitIntoAnEvent(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("a", maxNote), strings.Repeat("a", maxNote+1), strings.Repeat("ß", maxNote), strings.Repeat("a€", maxNote)} {
		got := clip(text, maxNote)
		if len(got) > maxNote || !utf8.ValidString(got) {
			t.Errorf("a note of %d bytes, valid: %v", len(got), utf8.ValidString(got))
		}
		if len(text) <= maxNote && got != text {
			t.Errorf("a text of %d bytes was cut to %d", len(text), len(got))
		}
	}
}

func TestReportErrNamesTheGravest(t *testing.T) {
	failures := []godwit.Failure{{Namespace: "ns", Name: "goose", Reason: "denied"}}
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

// TestWaitingIsSaidOncePerCause: also when it is for time alone, which is the common case and lasts the longest.
func TestWaitingIsSaidOncePerCause(t *testing.T) {
	var said []string
	logger := funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{})
	ctx := log.IntoContext(t.Context(), logger)
	r := &CRDMigrator{memory: map[string]*memory{}}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	one := []Server{{Name: "apiserver-1"}}
	others := &BlockedError{Blockers: []godwit.Blocker{{Reason: ReasonMigrationInProgress, Message: "by others"}}}
	for _, why := range []error{
		&NotSettledError{Wait: 75 * time.Second}, &NotSettledError{Wait: 70 * time.Second},
		&NotSettledError{Servers: one}, &NotSettledError{Servers: one},
		&NotSettledError{Wait: 60 * time.Second},
		others, others,
	} {
		if _, err := r.interrupted(ctx, crd, why); err != nil {
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

// TestMigratedTellsWhatTheCacheOffered: without it a migration by UseCache reads as if nothing had been written.
func TestMigratedTellsWhatTheCacheOffered(t *testing.T) {
	for reason, test := range map[string]struct {
		report Report
		want   bool
	}{
		"the cache offered all": {Report{Trimmed: true, Storage: walk.Report{Counts: godwit.Counts{Skipped: 3}}, Candidates: walk.Report{Counts: godwit.Counts{Migrated: 3}}}, true},
		"there was no cache":    {Report{Trimmed: true, Storage: walk.Report{Counts: godwit.Counts{Migrated: 3}}}, false},
	} {
		var said []string
		ctx := log.IntoContext(t.Context(), funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{}))
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}
		c := fake.NewClientBuilder().WithScheme(schemeWith(t, apiextensionsv1.AddToScheme)).WithObjects(crd).Build()
		r := &CRDMigrator{Client: c, memory: map[string]*memory{}}
		if _, err := r.concluded(ctx, &profile{observed: ObservedGenerationAnnotation}, crd, test.report); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		if len(said) != 1 || strings.Contains(said[0], "candidates") != test.want {
			t.Errorf("%s: logged %q, want one line that tells of candidates: %v", reason, said, test.want)
		}
	}
}
