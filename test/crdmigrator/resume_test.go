package crdmigrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
)

// interruptedObjects is enough for several pages before and after the interruption.
const interruptedObjects = 120

// interrupted is a CRD whose migration was cancelled after a third.
func interrupted(t *testing.T) (w *widgets, left int64) {
	t.Helper()
	w = newWidgets(t, shared)
	w.fill("v1", interruptedObjects)
	w.flip()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run := w.pauseAfter(ctx, w.quickMigrator(storageversion.Options{PageObjects: 10}), 40)
	cancel()
	report, err := run.resume()
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled run: %v, want context.Canceled", err)
	}
	if n := report.Storage.Counts.Migrated; n < 40 || n > 80 || report.Storage.Counts.Failed != 0 {
		t.Fatalf("cancelled run: %+v, want about a third of them and none failed", report.Storage.Counts)
	}
	w.mustBeStored("after the cancelled run", map[string]int{
		"v1": interruptedObjects - int(report.Storage.Counts.Migrated), "v2": int(report.Storage.Counts.Migrated),
	})
	w.mustHaveStoredVersions("after the cancelled run", "v1,v2")
	return w, interruptedObjects - report.Storage.Counts.Migrated
}

// TestCancelledRunIsResumed: another process resumes the run, and writes no object again.
func TestCancelledRunIsResumed(t *testing.T) {
	t.Parallel()
	w, left := interrupted(t)
	config, wire := tap(w.withoutLeases())
	m := newMigrator(t, config, storageversion.Options{Policy: quickSettle, PageObjects: 30})
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	if plan.State != decision.Ready || !plan.Resumes {
		t.Errorf("plan is %s, resumes %v, want Ready and resuming", plan.State, plan.Resumes)
	}

	report := w.mustMigrate(m)
	if want := (godwit.Counts{Migrated: left, Skipped: interruptedObjects - left}); report.Storage.Counts != want {
		t.Errorf("second run: %+v, want %+v", report.Storage.Counts, want)
	}
	w.mustBeMigrated(report, interruptedObjects)
	w.mustHaveBeenWritten("after both runs", interruptedObjects, 2)
	if n := wire.writesTo(w.group); n != int(left) {
		t.Errorf("second run sent %d writes for %d objects", n, left)
	}
	// For 4 pages, a list, a read of the CRD and one of discovery each; the CRD, other migrators and the count before; the CRD and
	// discovery, the trim and the removal of the checkpoint after; one or two checkpoints.
	if most := left + 4*3 + 2 + 3 + 4 + 2; report.Requests > most {
		t.Errorf("second run took %d requests for %d objects, want at most %d", report.Requests, left, most)
	}
}

// TestCheckpointLostCostsRequestsOnly: without a valid checkpoint, the server elides the
// writes of objects that were migrated before.
func TestCheckpointLostCostsRequestsOnly(t *testing.T) {
	t.Parallel()
	garbage := `{"crdUID": 7`
	for name, checkpoint := range map[string]*string{"stripped by GitOps": nil, "garbage": &garbage} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, left := interrupted(t)
			w.annotate(checkpoint)
			report := w.mustMigrate(w.quickMigrator(storageversion.Options{}))
			if want := (godwit.Counts{Migrated: left, Unchanged: interruptedObjects - left}); report.Storage.Counts != want {
				t.Errorf("second run: %+v, want %+v", report.Storage.Counts, want)
			}
			w.mustBeMigrated(report, interruptedObjects)
			w.mustHaveBeenWritten("after both runs", interruptedObjects, 2)
			if _, ok := w.crd().Annotations[evidence.CheckpointAnnotation]; ok {
				t.Error("the checkpoint outlived the migration")
			}
		})
	}
}

// TestNoTrimLeavesTheTrimForLater: the run that trims then needs no writes.
func TestNoTrimLeavesTheTrimForLater(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 100)
	w.flip()
	config, wire := tap(w.withoutLeases())
	report := w.mustMigrate(newMigrator(t, config, storageversion.Options{Policy: quickSettle, NoTrim: true}))
	if want := (godwit.Counts{Migrated: 100}); report.Storage.Counts != want || report.Trimmed {
		t.Errorf("run: %+v, trimmed %v, want %+v and not trimmed", report.Storage.Counts, report.Trimmed, want)
	}
	w.mustHaveStoredVersions("after a run that may not trim", "v1,v2")

	before := wire.writesTo(w.group)
	report = w.mustMigrate(newMigrator(t, config, storageversion.Options{Policy: quickSettle}))
	if want := (godwit.Counts{Skipped: 100}); report.Storage.Counts != want {
		t.Errorf("second run: %+v, want %+v", report.Storage.Counts, want)
	}
	if n := wire.writesTo(w.group) - before; n != 0 {
		t.Errorf("second run sent %d writes, want none", n)
	}
	w.mustBeMigrated(report, 100)
}

// TestChangedCRDIsNotTrimmed: another client changes the storage version between the last
// page and the trim.
func TestChangedCRDIsNotTrimmed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*widgets)
		stored string
	}{
		"another storage version": {
			change: func(w *widgets) { w.store("v1"); w.create(w.config, "v1", "a-new") },
			stored: "v1,v2",
		},
		"storedVersions": {
			change: func(w *widgets) { w.setStoredVersions("v1", "v2", "v3") },
			stored: "v1,v2,v3",
		},
		"there and back": {
			change: func(w *widgets) { w.store("v1"); w.create(w.config, "v1", "a-new"); w.store("v2") },
			stored: "v1,v2",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 40)
			w.flip()
			config, wire := tap(w.withoutLeases())
			m := newMigrator(t, config, storageversion.Options{Policy: quickSettle})
			trim := wire.haltBefore(t, func(r *http.Request) bool {
				return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, w.name+"/status")
			})
			run := w.pauseAt(t.Context(), m, trim, nil)
			w.mustBeStored("when the trim is due", map[string]int{"v2": 40})
			tc.change(w)
			report, err := run.resume()
			mustStopForChange(t, report, err)
			w.mustHaveStoredVersions("after the change", tc.stored)
		})
	}
}

// setStoredVersions sets status.storedVersions, which the API server does not validate.
func (w *widgets) setStoredVersions(versions ...string) {
	w.t.Helper()
	crd := w.crd()
	crd.Status.StoredVersions = versions
	if _, err := w.crds().UpdateStatus(w.t.Context(), crd, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// TestRestoredEtcdVoidsTheCheckpoint: after a restore of etcd from a backup,
// resourceVersions are older than the checkpoint's, and objects may be at any version.
func TestRestoredEtcdVoidsTheCheckpoint(t *testing.T) {
	t.Parallel()
	w, left := interrupted(t)
	var checkpoint evidence.Checkpoint
	if err := json.Unmarshal([]byte(w.crd().Annotations[evidence.CheckpointAnnotation]), &checkpoint); err != nil {
		t.Fatal(err)
	}
	checkpoint.ResourceVersion, checkpoint.Cursor = "9000000000", "default/w-0100"
	text, err := json.Marshal(checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	later := string(text)
	w.annotate(&later)

	m := w.quickMigrator(storageversion.Options{PageObjects: 20})
	report, err := w.migrate(t.Context(), m, nil)
	mustStopForChange(t, report, err)
	report = w.mustMigrate(m)
	if want := (godwit.Counts{Migrated: left, Unchanged: interruptedObjects - left}); report.Storage.Counts != want {
		t.Errorf("the run after it: %+v, want %+v", report.Storage.Counts, want)
	}
	w.mustBeMigrated(report, interruptedObjects)
}

// TestRepairDropsTheCheckpointOfTheWrongRun: a frozen server has written an object at the
// old version after a run that did not trim. The object's resourceVersion is newer than the
// run's, so that a resumed run skips it. The fix drops the checkpoint first.
func TestRepairDropsTheCheckpointOfTheWrongRun(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 20)
	w.flip()
	report := w.mustMigrate(w.quickMigrator(storageversion.Options{NoTrim: true}))
	if report.Checkpoint.ResourceVersion == "" {
		t.Fatal("a run that does not trim leaves no checkpoint")
	}
	key := w.key("w-0007")
	stored, err := w.plane.Etcd().Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Replace(string(stored.Kvs[0].Value), w.group+"/v2", w.group+"/v1", 1)
	if _, err := w.plane.Etcd().Put(t.Context(), key, old); err != nil {
		t.Fatal(err)
	}
	w.mustBeStored("after the frozen server wrote", map[string]int{"v1": 1, "v2": 19})

	w.annotate(nil)
	if report := w.mustMigrate(w.quickMigrator(storageversion.Options{})); report.Storage.Counts.Migrated != 1 || !report.Trimmed {
		t.Errorf("the repair: %+v, want one migrated, and trimmed", report)
	}
	w.mustBeStored("after the repair", map[string]int{"v2": 20})
}
