package crdmigrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// EventSucceeded is the reason of the event when storedVersions was trimmed.
	EventSucceeded = "StorageVersionMigrationSucceeded"
	// EventFailed is the reason of the event when a pass failed, or did not
	// converge.
	EventFailed = "StorageVersionMigrationFailed"
	// EventLosses is the reason of the event when a migration dropped values that AcceptLosses gives up.
	EventLosses = "StorageVersionMigrationLostValues"
	// eventWaiting is the reason of the event when an API server lease is stale: only a
	// user knows whether the server is gone for good.
	eventWaiting = "StorageVersionMigrationWaiting"

	// Events that differ only in their notes are folded into one, which keeps the
	// first note. An event whose note must not be dropped has an action of its own.
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
			if tried := report.RoundTrips.Counts.Total(); tried > 0 && report.Storage.Counts.Total() == 0 {
				log.FromContext(ctx).Info("Proving that each value is kept", "tried", tried, "remaining", report.RoundTrips.Remaining)
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
	if report.Candidates.Counts.Total() > 0 { // among the objects, the candidates count as Skipped
		what = append(what, "candidates", report.Candidates.Counts)
	}
	if proof := report.Checkpoint.Proof; proof != nil {
		what = append(what, "valuesProvenBy", proof.By)
		r.announceLosses(ctx, crd, proof)
	}
	log.FromContext(ctx).Info("Migrated", what...)
	r.event(crd, corev1.EventTypeNormal, EventSucceeded, actionMigrate, "every object is stored at "+stored)
}

// announceLosses reports the values that objects have lost with the operator's consent.
func (r *CRDMigrator) announceLosses(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, proof *evidence.Proof) {
	if len(proof.Accepted) == 0 && len(proof.Unproven) == 0 {
		return
	}
	lost := values.Describe(proof.Accepted, false)
	if len(proof.Unproven) > 0 {
		lost = strings.Join(append([]string{"what objects have only at " + strings.Join(proof.Unproven, ", ")}, lost), "; ")
	}
	log.FromContext(ctx).Info("Values were dropped, as AcceptLosses allows", "lost", lost)
	r.event(crd, corev1.EventTypeWarning, EventLosses, actionMigrate, "the migration dropped values, as AcceptLosses allows: "+lost)
}

// logWaiting logs why the migration waits, unless this was logged last. If a lease is
// stale, it also creates an event: only a user knows whether that API server is gone
// for good.
func (r *CRDMigrator) logWaiting(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, step decision.Step, why error) {
	m := r.memoryOf(crd.Name)
	if m.logged == step.Message {
		return
	}
	m.logged = step.Message
	log.FromContext(ctx).Info("Waiting", "action", step.Action, "why", why.Error())
	if step.Action == decision.ActionWait && len(step.Blockers) > 0 {
		r.event(crd, corev1.EventTypeWarning, eventWaiting, actionMigrate, why.Error()+"; "+step.Blockers[0].Fix.String())
	}
}

// announceConflicts reports conflicts that do not end, and again each hour, since the API
// server has then dropped the event.
func (r *CRDMigrator) announceConflicts(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, step decision.Step, report decision.Report) {
	m, now, passes, what := r.memoryOf(crd.Name), r.clock.Now(), step.History.Conflicts, report.Err().Error()
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
// cleanup, since the error names only the first one.
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
