package crdmigrator_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

// outlived makes n objects that need a rewrite and a cleanup: they were written at
// v1, which is neither served nor the storage version now.
func outlived(t *testing.T, n int) *widgets {
	w := newWidgets(t, shared)
	w.fill("v1", n)
	w.flip()
	w.setVersions(version("v1", false, false), version("v2", true, true))
	return w
}

// cleanups calls meet before each cleanup of w-0003 is sent. An answer of meet takes
// the place of the server's.
func cleanups(config *rest.Config, meet func(nth int) *http.Response) *rest.Config {
	config, nth := rest.CopyConfig(config), 0 // the requests for one object do not overlap
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Content-Type") == string(types.JSONPatchType) && strings.HasSuffix(req.URL.Path, "/w-0003") {
				nth++
				if answer := meet(nth); answer != nil {
					answer.Request = req
					return answer, nil
				}
			}
			return next.RoundTrip(req)
		})
	})
	return config
}

func unavailable() *http.Response {
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(""))}
}

// trouble is what disturbs the cleanup of w-0003, one of ten objects.
type trouble struct {
	reason  string
	meet    func(w *widgets, nth int) *http.Response
	policy  string
	storage godwit.Counts
	fields  godwit.Counts
	why     string
}

// TestCleanupThatFailsBlocksNoTrim: the cleanup of one object fails. The report counts
// it apart from the rewrite, which does not depend on it, and the next run completes
// it.
func TestCleanupThatFailsBlocksNoTrim(t *testing.T) {
	t.Parallel()
	cases := map[string]trouble{
		"two conflicts": {
			reason:  "the third attempt succeeds, and is the rewrite as well",
			meet:    func(w *widgets, nth int) *http.Response { w.moveBefore(nth, 2); return nil },
			storage: godwit.Counts{Migrated: 10},
			fields:  godwit.Counts{Migrated: 10},
		},
		"conflicts without end": {
			reason:  "another client keeps writing the object: it is stored, and left to another run",
			meet:    func(w *widgets, nth int) *http.Response { w.moveBefore(nth, nth); return nil },
			storage: godwit.Counts{Migrated: 9, Skipped: 1},
			fields:  godwit.Counts{Migrated: 9, Deferred: 1},
			why:     "3 conflicts",
		},
		"faults": {
			reason:  "the faults may pass, and an empty patch migrates the object meanwhile",
			meet:    func(*widgets, int) *http.Response { return unavailable() },
			storage: godwit.Counts{Migrated: 10},
			fields:  godwit.Counts{Migrated: 9, Deferred: 1},
			why:     "clean managedFields",
		},
		"an answer that kept the entries": {
			reason:  "a server replaces entries that it can't read by its own, and answers 200",
			meet:    func(w *widgets, _ int) *http.Response { return w.unchanged("w-0003") },
			storage: godwit.Counts{Migrated: 10},
			fields:  godwit.Counts{Migrated: 9, Failed: 1},
			why:     "kept managedFields",
		},
		"a policy": {
			reason:  "a retry does not help, and an empty patch migrates the object meanwhile",
			meet:    func(*widgets, int) *http.Response { return nil },
			policy:  "object.metadata.name != 'w-0003' || object.metadata.managedFields == oldObject.metadata.managedFields",
			storage: godwit.Counts{Migrated: 10},
			fields:  godwit.Counts{Migrated: 9, Failed: 1},
			why:     "not on a Friday",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.mustBlockNothing(t)
		})
	}
}

func (tc trouble) mustBlockNothing(t *testing.T) {
	t.Helper()
	w := outlived(t, 10)
	if tc.policy != "" {
		w.newPolicy(tc.policy)
		w.awaitCleanupRefused("w-0003")
	}
	config := cleanups(w.withoutLeases(), func(nth int) *http.Response { return tc.meet(w, nth) })
	report := w.mustMigrate(newMigrator(t, config, storageversion.Options{Policy: quickSettle, Attempts: 5}))
	if report.Storage.Counts != tc.storage || report.ManagedFields.Counts != tc.fields || !report.Trimmed {
		t.Errorf("%s: storage %+v, managedFields %+v, trimmed %v, want %+v, %+v and trimmed",
			tc.reason, report.Storage, report.ManagedFields, report.Trimmed, tc.storage, tc.fields)
	}
	if len(report.Storage.Failures) != 0 {
		t.Errorf("failures of the rewrite = %+v, want none for the cleanup", report.Storage.Failures)
	}
	mustName(t, report.ManagedFields, tc.fields, "w-0003", tc.why)
	w.mustBeStored("after the run", map[string]int{"v2": 10})
	w.mustHaveStoredVersions("after the run", "v2")

	w.allowAll()
	w.mustClean(newMigrator(t, w.config, storageversion.Options{Policy: quickSettle}), tc.fields.Deferred+tc.fields.Failed)
}

// unchanged answers a write with the stored object.
func (w *widgets) unchanged(name string) *http.Response {
	o, err := w.at("v2").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Error(err) // not Fatal: this is a worker of the run
		return unavailable()
	}
	o.SetAPIVersion("meta.k8s.io/v1") // what a client reads that asks for metadata, and one that asks for the object
	o.SetKind("PartialObjectMetadata")
	body, err := o.MarshalJSON()
	if err != nil {
		w.t.Error(err)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// mustName checks that a tally names the one object that failed or was deferred.
func mustName(t *testing.T, tally decision.Tally, counts godwit.Counts, name, why string) {
	t.Helper()
	if counts.Settled() {
		if len(tally.Failures) != 0 {
			t.Errorf("failures = %+v, want none", tally.Failures)
		}
		return
	}
	if len(tally.Failures) != 1 || tally.Failures[0].Name != name || !strings.Contains(tally.Failures[0].Message, why) {
		t.Errorf("failures = %+v, want one of %s with %q", tally.Failures, name, why)
	}
}

// moveBefore writes w-0003 before its first cleanups, so that they conflict.
func (w *widgets) moveBefore(nth, moves int) {
	if nth > moves {
		return
	}
	label := []byte(`{"metadata":{"labels":{"moved":"` + strings.Repeat("x", nth) + `"}}}`)
	if _, err := w.at("v2").Patch(w.t.Context(), "w-0003", types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		w.t.Error(err) // not Fatal: this is a worker of the run
	}
}

func (w *widgets) awaitCleanupRefused(name string) {
	w.t.Helper()
	await(w.t, "a cleanup of "+name+" to be refused", func() bool { return apierrors.IsInvalid(w.tryCleanup(name)) })
}

func (w *widgets) tryCleanup(name string) error {
	reset := []byte(`{"metadata":{"managedFields":[{}]}}`)
	_, err := w.at("v2").Patch(w.t.Context(), name, types.MergePatchType, reset, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// allowAll deletes the policy of a test, if it has one.
func (w *widgets) allowAll() {
	w.t.Helper()
	policies := w.admission().AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	err := policies.Delete(w.t.Context(), "binding-of-"+w.group, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	if err != nil {
		w.t.Fatal(err)
	}
	await(w.t, "cleanups to be allowed", func() bool { return w.tryCleanup("w-0003") == nil })
}

// TestEveryWriteOverEntriesOfARemovedVersion: the server can't apply to an object
// whose managedFields name a removed version. The cleanup comes first, and is the
// rewrite as well.
func TestEveryWriteOverEntriesOfARemovedVersion(t *testing.T) {
	t.Parallel()
	const objects = 5
	for _, write := range decision.Writes {
		t.Run(string(write), func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", objects)
			w.flip()
			for name := range w.specs("v2") {
				w.alterStored(name, func(o *unstructured.Unstructured) {
					fields := `{"f:spec":{"f:color":{}}}`
					o.SetManagedFields(append(o.GetManagedFields(), w.entry("painter", metav1.ManagedFieldsOperationApply, "v0", fields)))
				})
			}
			if _, err := w.apply("decorator", "v2", "w-0000", "red"); err == nil {
				t.Error("an apply over an entry of v0 succeeded, want it to fail")
			}
			_, config := w.user(append(w.permissionsOf(write), permission{"patch", w.group, w.plural})...)
			m := newMigrator(t, config, storageversion.Options{Policy: decision.Policy{Settle: -1, Write: write}})
			report := w.mustMigrate(m)
			want := godwit.Counts{Migrated: objects}
			if report.Storage.Counts != want || report.ManagedFields.Counts != want || !report.Trimmed {
				t.Errorf("run: %+v, want all migrated and cleaned, and trimmed", report)
			}
			w.mustBeStored("after the run", map[string]int{"v2": objects})
			w.mustHaveBeenWritten("created, altered and migrated", objects, 3)
			if _, err := w.apply("decorator", "v2", "w-0000", "red"); err != nil {
				t.Errorf("an apply after the run: %v", err)
			}
		})
	}
}

// TestCleanupStopsWithoutPermission: a write to /status does not need the permission
// that a cleanup needs. Without it the objects are migrated, and the report names the
// permission.
func TestCleanupStopsWithoutPermission(t *testing.T) {
	t.Parallel()
	w := outlived(t, 100)
	_, config := w.user(readCRD, permission{"list", w.group, w.plural}, permission{"patch", w.group, w.plural + "/status"},
		permission{"patch", crdsGroup, "customresourcedefinitions"}, permission{"patch", crdsGroup, "customresourcedefinitions/status"})
	var sent atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Content-Type") == string(types.JSONPatchType) && strings.Contains(req.URL.Path, w.group) && !strings.Contains(req.URL.Path, crdsGroup) {
				sent.Add(1)
			}
			return next.RoundTrip(req)
		})
	})
	policy := quickSettle
	policy.Write = decision.WriteStatusPatch
	report := w.mustMigrate(newMigrator(t, config, storageversion.Options{Policy: policy}))
	if storage, fields := report.Storage.Counts, report.ManagedFields.Counts; storage.Migrated != 100 || fields.Failed != 100 || !report.Trimmed {
		t.Errorf("storage %+v, managedFields %+v, trimmed: %v", storage, fields, report.Trimmed)
	}
	if most := int64(walk.DefaultMaxInFlight * 5); sent.Load() > most {
		t.Errorf("%d cleanups were sent, want at most the %d that may be under way before the first is refused", sent.Load(), most)
	}
	for _, f := range report.ManagedFields.Failures {
		if !strings.Contains(f.Message, "grant ") {
			t.Errorf("failure = %q, want it to name the permission to grant", f.Message)
		}
	}
}
