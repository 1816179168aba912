package crdmigrator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/crdmigrator/internal/recent"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// EventSucceeded is the reason of the event when storedVersions was trimmed.
	EventSucceeded = "StorageVersionMigrationSucceeded"
	// EventFailed is the reason of the event when a pass failed, or did not
	// converge.
	EventFailed = "StorageVersionMigrationFailed"
	// eventWaiting is the reason of the event when an API server lease is stale: only a
	// person knows whether it is gone for good.
	eventWaiting = "StorageVersionMigrationWaiting"

	// Events that differ in nothing but their notes are folded into one, which
	// keeps the first note: what must be read has an action of its own.
	actionMigrate = "MigrateStorageVersion"
	actionRetry   = "RetryStorageVersionMigration"

	// reportAgain is how long an API server keeps events, by default.
	reportAgain = time.Hour

	// concurrentCRDs is enough for some that wait and one or two that run.
	concurrentCRDs = 4

	defaultCacheGCInterval = 10 * time.Minute
	logProgressEvery       = 10 * time.Second
)

// CRDMigrator is a [Migrator] to be embedded in an operator: a reconciler of
// CustomResourceDefinitions, those whose kinds Config names and those that
// Selector chooses. Set its fields, then call SetupWithManager, once.
type CRDMigrator struct {
	// Client reads what the operator caches, for kinds with UseCache, and writes
	// the annotation of what is done.
	Client client.Client
	// APIReader reads CRDs and lists objects, live: mgr.GetAPIReader().
	APIReader client.Reader

	// SkipCRDMigrationPhases are not run. With both skipped, nothing is set up.
	SkipCRDMigrationPhases []Phase
	// Config names kinds, by a value of their Go type; any served version will do.
	Config map[client.Object]ByObjectConfig
	// Selector chooses CRDs; its zero value, none. Config goes first.
	Selector Selector
	// ObservedGenerationAnnotation is the annotation of a CRD of Config for the
	// generation that needs no more work; empty means
	// ClusterAPIObservedGenerationAnnotation, so that Cluster API's migrator and this
	// one may follow each other. Both names that Cluster API has for it are read in
	// any case.
	ObservedGenerationAnnotation string

	// Recorder is told of every trim and every failure; nil means nobody is.
	Recorder events.EventRecorder
	// PageSize is the number of objects in a page; 0 means
	// walk.DefaultPageObjects, and 100 for CRDs that Selector chose.
	PageSize int64
	// CacheGCInterval is how often what was written over an hour ago is
	// forgotten; 0 means 10 minutes.
	CacheGCInterval time.Duration

	// Write is how objects are written; empty means WritePatch, and WriteUpdate for
	// CRDs that Selector chose.
	Write Write
	// Settle is the settle time, as in [Policy]. It counts from the first sight of
	// every server having adopted the change: the process may have come up a moment
	// after a server came back.
	Settle time.Duration
	// AcceptStaleLeases goes on without the servers whose leases are stale.
	AcceptStaleLeases bool
	// Limiter paces every write and all that goes with it, but the lists of
	// objects, which go through APIReader; share it with the operator's other
	// migrators. Nil means one of its own.
	Limiter *walk.Limiter

	scope  scope
	clock  clock.PassiveClock // for tests; nil means the real one
	recent *recent.Writes
	mu     sync.Mutex
	memory map[string]*memory // by name of the CRD

	leasesUnread atomic.Bool // and that was said
}

// memory is what one reconciliation of a CRD leaves to the next.
type memory struct {
	plan     *Plan // of a run that waits for the servers to settle
	history  History
	reported time.Time       // when a lack of convergence was last reported
	said     string          // what was last logged about why nothing happens
	clean    kube.Generation // where nothing was found to do, and so no annotation was written
}

// Reconcile brings one CRD a step further. Every decision is made on what
// is read live.
func (r *CRDMigrator) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := r.APIReader.Get(ctx, req.NamespacedName, crd); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	p := r.scope.profileOf(crd)
	switch {
	case p == nil || crd.DeletionTimestamp != nil:
		r.forget(crd.Name)
		return reconcile.Result{}, nil
	case r.nothingLeft(p, crd):
		return reconcile.Result{}, nil
	}
	plan, report, err := r.migrate(ctx, p, crd)
	if err != nil && ctx.Err() != nil {
		return reconcile.Result{}, err
	}
	return r.conclude(ctx, p, crd, pass{plan, report, err})
}

// pass is one attempt at a migration: the plan, and what became of it.
type pass struct {
	plan   Plan
	report Report
	err    error
}

// nothingLeft: the annotation alone does not tell. Whoever restores a CRD
// brings dirty storedVersions back without a new generation.
func (r *CRDMigrator) nothingLeft(p *profile, crd *apiextensionsv1.CustomResourceDefinition) bool {
	done := p.observes(crd) || r.remember(crd.Name).clean == kube.GenerationOf(crd)
	return done && (kube.Trimmed(crd) || r.skips(StorageVersionMigrationPhase))
}

func (r *CRDMigrator) remember(crd string) *memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory[crd] == nil {
		r.memory[crd] = &memory{}
	}
	return r.memory[crd]
}

func (r *CRDMigrator) forget(crd string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memory, crd)
	for _, p := range r.scope.byKind {
		p.migrator.Forget(crd)
	}
	if r.scope.selected != nil {
		r.scope.selected.migrator.Forget(crd)
	}
}

// migrate plans and runs. A run that has to wait keeps its plan.
func (r *CRDMigrator) migrate(ctx context.Context, p *profile, crd *apiextensionsv1.CustomResourceDefinition) (Plan, Report, error) {
	m := r.remember(crd.Name)
	if m.plan == nil || m.plan.UID != crd.UID || m.plan.Generation != crd.Generation {
		plan, err := p.migrator.Plan(ctx, crd.Name)
		if err != nil {
			return plan, Report{}, err
		}
		if plan.ServersUnread != "" && !r.leasesUnread.Swap(true) { // it is true of every CRD, every time
			log.FromContext(ctx).Info("The API servers can't be told apart, so time alone decides when to write", "why", plan.ServersUnread)
		}
		m.plan = &plan
	}
	progress, stop := r.logProgress(ctx)
	report, err := p.migrator.Run(ctx, *m.plan, progress)
	stop()
	return *m.plan, report, err
}

// logProgress logs now and then how far a run is, also while it waits for its turn.
func (r *CRDMigrator) logProgress(ctx context.Context) (progress func(Report), stop func()) {
	var latest atomic.Pointer[Report]
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
	return func(report Report) { latest.Store(&report) }, func() { cancel(); <-ended }
}

// conclude renders what [Next] decides about a pass. A failure is an error: the
// operator's own rate limiter says when to try again.
func (r *CRDMigrator) conclude(ctx context.Context, p *profile, crd *apiextensionsv1.CustomResourceDefinition, now pass) (reconcile.Result, error) {
	m := r.remember(crd.Name)
	step := Next(now.plan, now.report, now.err, m.history)
	m.history = step.History
	if step.Action != ActionWait {
		m.plan = nil
	}
	if step.History.Conflicts == 0 {
		m.reported = time.Time{}
	}
	r.tellTrimmed(ctx, crd, now.report)
	switch {
	case step.Action == ActionDone:
		return reconcile.Result{}, r.finish(ctx, p, crd, now.report)
	case step.Err != nil:
		m.said = ""
		logFailures(ctx, 0, now.report)
		r.event(crd, corev1.EventTypeWarning, EventFailed, actionMigrate, step.Err.Error())
		return reconcile.Result{}, step.Err
	case now.err == nil:
		r.tellConflicts(ctx, crd, step, now.report)
	default:
		r.tellWaiting(ctx, crd, step, now.err)
	}
	return reconcile.Result{RequeueAfter: step.After}, nil
}

func (r *CRDMigrator) tellTrimmed(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, report Report) {
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

// tellWaiting logs why nothing happens, unless that is what was logged last. Which
// API server is gone for good only a user knows, who gets an event.
func (r *CRDMigrator) tellWaiting(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, step Step, why error) {
	m := r.remember(crd.Name)
	if m.said == step.Message {
		return
	}
	m.said = step.Message
	log.FromContext(ctx).Info("Waiting", "action", step.Action, "why", why.Error())
	if step.Action == ActionWait && len(step.Blockers) > 0 {
		r.event(crd, corev1.EventTypeWarning, eventWaiting, actionMigrate, why.Error()+"; "+step.Blockers[0].Fix.String())
	}
}

// tellConflicts reports conflicts that don't end, and again each hour: the event is
// gone by then.
func (r *CRDMigrator) tellConflicts(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, step Step, report Report) {
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

// finish remembers that this generation needs no more work.
func (r *CRDMigrator) finish(ctx context.Context, p *profile, crd *apiextensionsv1.CustomResourceDefinition, report Report) error {
	*r.remember(crd.Name) = memory{}
	if p == r.scope.selected && !wrote(report) { // it is left as it is, and GitOps has nothing to fight about
		r.remember(crd.Name).clean = kube.GenerationOf(crd)
		return nil
	}
	return r.markObserved(ctx, p, crd)
}

// wrote reports whether a complete pass has changed anything that lasts.
func wrote(report Report) bool { return report.Trimmed || report.ManagedFields.Counts.Migrated > 0 }

// logFailures logs each object that the report names, of the rewrite and of the
// cleanup: the error names the first alone.
func logFailures(ctx context.Context, verbosity int, report Report) {
	for _, f := range slices.Concat(report.Storage.Failures, report.ManagedFields.Failures) {
		log.FromContext(ctx).V(verbosity).Info("Object not migrated", "namespace", f.Namespace, "name", f.Name, "reason", f.Reason, "message", f.Message)
	}
}

// markObserved writes down that this generation needs no more work. Should the
// CRD have changed meanwhile, the next generation is not it.
func (r *CRDMigrator) markObserved(ctx context.Context, p *profile, crd *apiextensionsv1.CustomResourceDefinition) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": crd.UID, "annotations": map[string]string{p.observed: strconv.FormatInt(crd.Generation, 10)},
	}})
	if err != nil {
		return err
	}
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}}
	o.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	err = r.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(kube.FieldManager))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // deleted, or created again: another event tells
	}
	if err != nil {
		return fmt.Errorf("annotate %s with %s: %w", crd.Name, p.observed, err)
	}
	return nil
}

func (r *CRDMigrator) event(crd *apiextensionsv1.CustomResourceDefinition, eventType, reason, action, note string) {
	if r.Recorder == nil {
		return
	}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	r.Recorder.Eventf(crd, nil, eventType, reason, action, "%s", kube.EventNote(note))
}
