package crdmigrator_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/walk"
)

// TestTwoMigratorsAtOnce: both runs succeed, and the server elides the second write of
// each object.
func TestTwoMigratorsAtOnce(t *testing.T) {
	t.Parallel()
	const objects = 300
	w := newWidgets(t, shared)
	w.fill("v1", objects)
	w.flip()
	config := w.withoutLeases()
	var reports [2]decision.Report
	var errs [2]error
	var migrators sync.WaitGroup
	for i := range reports {
		m := newMigrator(t, config, storageversion.Options{Policy: quickSettle, PageObjects: 30})
		migrators.Go(func() { reports[i], errs[i] = w.migrate(t.Context(), m, nil) })
	}
	migrators.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	for _, report := range reports {
		w.mustBeMigrated(report, objects)
	}
	w.mustBeWrittenOnce()
	if _, ok := w.crd().Annotations[evidence.CheckpointAnnotation]; ok {
		t.Error("a checkpoint outlived both migrations")
	}
}

// TestTrimmedBetweenPlanAndRun: another migrator does all the work after the plan. The run does not say that
// the trim is switched off; the next plan finds everything done.
func TestTrimmedBetweenPlanAndRun(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	w.flip()
	late := w.quickMigrator(storageversion.Options{})
	plan, err := late.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	w.mustBeMigrated(w.mustMigrate(w.quickMigrator(storageversion.Options{})), 5)

	report, err := late.Run(t.Context(), plan, nil)
	if step := decision.Next(plan, report, err, decision.History{}); !errors.Is(err, decision.ErrChanged) || step.Action != decision.ActionReplan {
		t.Errorf("the run: %v, then %+v; want ErrChanged and another plan", err, step)
	}
	if plan, err = late.Plan(t.Context(), w.name); err != nil {
		t.Fatal(err)
	}
	report, err = late.Run(t.Context(), plan, nil)
	if step := decision.Next(plan, report, err, decision.History{}); step.Reason != decision.ReasonSucceeded || report.Trimmed {
		t.Errorf("the second run: %v, trimmed %t, then %+v; want %s, and no trim by it", err, report.Trimmed, step, decision.ReasonSucceeded)
	}
}

// TestMigratorOvertaken: while one run is paused, another migrates all objects.
func TestMigratorOvertaken(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		stands func(*http.Request) bool // nil: after some objects
		then   func(*widgets)
		err    error
	}{
		"in the middle": {
			reason: "the remaining objects are migrated already",
		},
		"before the trim": {
			reason: "storedVersions is trimmed already",
			stands: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/status") },
		},
		"before the trim and the old version is dropped": {
			reason: "the paused run has no proof for the changed CRD, although nothing is left to do",
			stands: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/status") },
			then:   func(w *widgets) { w.setVersions(version("v2", true, true)) },
			err:    decision.ErrChanged,
		},
		"before the trim and the next version is stored": {
			reason: "the paused run has no proof for the changed CRD",
			stands: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/status") },
			then:   func(w *widgets) { w.store("v3") },
			err:    decision.ErrChanged,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 100)
			w.flip()
			config := w.withoutLeases()
			quick := newMigrator(t, config, storageversion.Options{Policy: quickSettle})
			config, wire := tap(config)
			slow := newMigrator(t, config, storageversion.Options{Policy: quickSettle, PageObjects: 20})
			var run *run
			if tc.stands == nil {
				run = w.pauseAfter(t.Context(), slow, 30)
			} else {
				run = w.pauseAt(t.Context(), slow, wire.haltBefore(t, tc.stands), nil)
			}
			w.mustBeMigrated(w.mustMigrate(quick), 100)
			if tc.then != nil {
				tc.then(w)
			}
			stored := w.storedVersions()

			report, err := run.resume()
			if !errors.Is(err, tc.err) || report.Storage.Counts.Total() != 100 || !report.Storage.Counts.Settled() || report.Trimmed == (tc.err != nil) {
				t.Errorf("%s: %+v, trimmed %v, %v", tc.reason, report.Storage, report.Trimmed, err)
			}
			w.mustHaveStoredVersions(tc.reason, stored)
			w.mustHaveBeenWritten("after both", 100, 2)
		})
	}
}

// keepEditing writes the CRD as another client, again and again, until the returned
// function is called.
func (w *widgets) keepEditing(interval time.Duration, change func(crd *apiextensionsv1.CustomResourceDefinition, i int)) (peace func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	var editor sync.WaitGroup
	editor.Go(func() {
		for i := 0; walk.Wait(ctx, interval) == nil; i++ {
			_, err := controlplane.UpdateCRD(ctx, w.config, w.name, func(crd *apiextensionsv1.CustomResourceDefinition) { change(crd, i) })
			if err != nil && ctx.Err() == nil {
				w.t.Error(err)
			}
		}
	})
	peace = func() { cancel(); editor.Wait() }
	w.t.Cleanup(peace)
	return peace
}

// TestStorageVersionThatKeepsChanging: two teams set the storage version in turn during
// runs. The runs end without a trim, the plan becomes Blocked, and the migration completes
// once the changes end.
func TestStorageVersionThatKeepsChanging(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 100)
	w.flip()
	// Its pass outlasts several changes, while its pages don't.
	m := w.quickMigrator(storageversion.Options{PageObjects: 5, Limiter: walk.NewLimiter(walk.Limits{MaxWritesPerSecond: 40})})
	peace := w.keepEditing(400*time.Millisecond, func(crd *apiextensionsv1.CustomResourceDefinition, i int) {
		crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = i%2 == 0, i%2 == 1
	})
	var blocked *decision.BlockedError
	await(t, "the plan to be blocked", func() bool {
		report, err := w.migrate(t.Context(), m, nil)
		if errors.As(err, &blocked) {
			return true
		}
		mustStopForChange(t, report, err)
		return false
	})
	peace()
	if b := blocked.Blockers; len(b) != 1 || b[0].Reason != decision.ReasonCRDKeepsChanging {
		t.Errorf("blocked by %+v, want CRDKeepsChanging", b)
	}
	w.mustHaveStoredVersions("while it keeps changing", "v1,v2")

	w.annotate(nil) // as the remedy says
	w.store("v2")
	w.mustBeMigrated(w.mustMigrate(m), 100)
}

// TestSchemaThatKeepsChanging: edits that do not change the storage version cause a restart
// at most, and no wrong proof. A run reads the CRD before each page: one edit between two
// reads does not end it, several do, and the next run starts again.
func TestSchemaThatKeepsChanging(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 100)
	w.flip()
	// One object after the other: at most one read is ahead of the object that is done,
	// so that there is one read between edits that are 20 objects apart, and at least two
	// edits between two reads where three edits come at once.
	m := w.quickMigrator(storageversion.Options{PageObjects: 5, Limiter: walk.NewLimiter(walk.Limits{MaxInFlight: 1})})
	edits := 0
	editing := func(atOnce map[int64]int) func(decision.Report) {
		return func(r decision.Report) {
			for range atOnce[r.Storage.Counts.Total()] {
				edits++
				_, err := controlplane.UpdateCRD(t.Context(), w.config, w.name, func(crd *apiextensionsv1.CustomResourceDefinition) {
					crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Description = fmt.Sprint("widget number ", edits)
				})
				if err != nil {
					t.Error(err)
				}
			}
		}
	}
	report, err := w.migrate(t.Context(), m, editing(map[int64]int{20: 1, 40: 1, 60: 3}))
	mustStopForChange(t, report, err)
	if edits != 5 {
		t.Errorf("stopped after %d edits, want 5: single edits must not stop a run", edits)
	}

	if report, err = w.migrate(t.Context(), m, editing(map[int64]int{20: 1, 40: 1, 60: 1, 80: 1})); err != nil {
		t.Errorf("the second run: %v after %d edits in all, want no error", err, edits)
	}
	if edits != 9 {
		t.Fatalf("%d edits in all, want 9", edits)
	}
	w.mustBeMigrated(report, 100)
	w.mustHaveBeenWritten("after all", 100, 2)
}

// TestAnnotationsRemovedAllTheTime: GitOps removes annotations that it does not manage
// within moments. A run succeeds, and a resumed run only sends more requests.
func TestAnnotationsRemovedAllTheTime(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*apiextensionsv1.CustomResourceDefinition){
		"the checkpoint": func(crd *apiextensionsv1.CustomResourceDefinition) {
			delete(crd.Annotations, evidence.CheckpointAnnotation)
		},
		"all annotations": func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Annotations = nil },
	}
	for name, strip := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 120)
			w.flip()
			w.keepEditing(20*time.Millisecond, func(crd *apiextensionsv1.CustomResourceDefinition, _ int) { strip(crd) })
			stripped := func() bool { _, ok := w.crd().Annotations[evidence.CheckpointAnnotation]; return !ok }

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			run := w.pauseAfter(ctx, w.quickMigrator(storageversion.Options{PageObjects: 10}), 40)
			cancel()
			report, err := run.resume()
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("cancelled run: %v, want context.Canceled", err)
			}
			done := report.Storage.Counts.Migrated
			await(t, "the checkpoint to be stripped", stripped)

			report = w.mustMigrate(w.quickMigrator(storageversion.Options{PageObjects: 10}))
			if want := (godwit.Counts{Migrated: 120 - done, Unchanged: done}); report.Storage.Counts != want {
				t.Errorf("second run: %+v, want %+v", report.Storage.Counts, want)
			}
			w.mustBeMigrated(report, 120)
			w.mustHaveBeenWritten("after both runs", 120, 2)
		})
	}
}
