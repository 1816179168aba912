package crdmigrator

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// EventSucceeded is the reason of the event when storedVersions was trimmed.
	EventSucceeded = "StorageVersionMigrationSucceeded"
	// EventFailed is the reason of the event when a pass failed, or did not
	// converge.
	EventFailed = "StorageVersionMigrationFailed"
	// eventWaiting is the reason of the event when an API server lease is stale: only a
	// user knows whether the server is gone for good.
	eventWaiting = "StorageVersionMigrationWaiting"

	// Events that differ in nothing but their notes are folded into one, which
	// keeps the first note: what must be read has an action of its own.
	actionMigrate = "MigrateStorageVersion"
	actionRetry   = "RetryStorageVersionMigration"

	// reportAgain is how long an API server keeps events, by default.
	reportAgain = time.Hour

	logProgressEvery = 10 * time.Second
)

// logProgress logs now and then how far a run is, also while it waits for its turn.
func (r *CRDMigrator) logProgress(ctx context.Context) (progress func(decision.Report), stop func()) {
	var latest atomic.Pointer[decision.Report]
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for walk.Wait(ctx, logProgressEvery) == nil {
			report := latest.Load()
			if report == nil {
				continue
			}
			storage := report.Storage
			if storage.Counts.Total() == 0 {
				storage = report.Candidates
			}
			log.FromContext(ctx).Info("Migrating", "done", storage.Counts.Total(), "remaining", storage.Remaining,
				"failed", storage.Counts.Failed, "waitsForByteBudget", r.Limiter.WaitsForBytes().Round(time.Second).String())
		}
	}()
	return func(report decision.Report) { latest.Store(&report) }, func() { cancel(); <-ended }
}

func (r *CRDMigrator) announceTrim(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, report decision.Report) {
	if !report.Trimmed {
		return
	}
	stored := report.Checkpoint.StorageVersion // crd may be older than the run
	what := []any{"storageVersion", stored, "objects", report.Storage.Counts, "requests", report.Requests}
	if report.Candidates.Counts.Total() > 0 { // all that the cache offered is Skipped among the objects
		what = append(what, "candidates", report.Candidates.Counts)
	}
	log.FromContext(ctx).Info("Migrated", what...)
	r.event(crd, corev1.EventTypeNormal, EventSucceeded, actionMigrate, "every object is stored at "+stored)
}

// logWaiting logs why nothing happens, unless that is what was logged last. Which
// API server is gone for good only a user knows, who gets an event.
func (r *CRDMigrator) logWaiting(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, step decision.Step, why error) {
	m := r.remember(crd.Name)
	if m.said == step.Message {
		return
	}
	m.said = step.Message
	log.FromContext(ctx).Info("Waiting", "action", step.Action, "why", why.Error())
	if step.Action == decision.ActionWait && len(step.Blockers) > 0 {
		r.event(crd, corev1.EventTypeWarning, eventWaiting, actionMigrate, why.Error()+"; "+step.Blockers[0].Fix.String())
	}
}

// announceConflicts reports conflicts that don't end, and again each hour: the event is
// gone by then.
func (r *CRDMigrator) announceConflicts(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, step decision.Step, report decision.Report) {
	m, now, passes, what := r.remember(crd.Name), r.clock.Now(), step.History.Conflicts, report.Err().Error()
	if !step.Stalled() || now.Sub(m.reported) < reportAgain {
		log.FromContext(ctx).V(1).Info("Other clients changed objects during the pass", "passes", passes, "what", what)
		logFailures(ctx, 1, report)
		return
	}
	m.reported = now
	logFailures(ctx, 0, report)
	log.FromContext(ctx).Info("Other clients keep changing objects", "reason", step.Reason, "passes", passes, "what", what)
	r.event(crd, corev1.EventTypeWarning, EventFailed, actionRetry, fmt.Sprintf("%s: %d passes in a row: %s", step.Reason, passes, what))
}

// logFailures logs each object that the report names, of the rewrite and of the
// cleanup: the error names the first alone.
func logFailures(ctx context.Context, verbosity int, report decision.Report) {
	for _, f := range slices.Concat(report.Storage.Failures, report.ManagedFields.Failures) {
		log.FromContext(ctx).V(verbosity).Info("Object not migrated", "namespace", f.Namespace, "name", f.Name, "reason", f.Reason, "message", f.Message)
	}
}

func (r *CRDMigrator) event(crd *apiextensionsv1.CustomResourceDefinition, eventType, reason, action, note string) {
	if r.Recorder == nil {
		return
	}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	r.Recorder.Eventf(crd, nil, eventType, reason, action, "%s", kube.EventNote(note))
}
