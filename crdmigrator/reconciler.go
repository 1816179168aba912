package crdmigrator

import (
	"context"
	"encoding/json"
	"errors"
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

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// EventSucceeded is the reason of the event when storedVersions was trimmed.
	EventSucceeded = "StorageVersionMigrationSucceeded"
	// EventFailed is the reason of the event when a pass failed, or did not
	// converge.
	EventFailed = "StorageVersionMigrationFailed"
	// EventWaiting is the reason of the event when an API server is silent: only a
	// person knows whether it is gone for good.
	EventWaiting = "StorageVersionMigrationWaiting"
	// ReasonNotConverging: pass after pass met writes by others.
	ReasonNotConverging = "NotConverging"

	// Events that differ in nothing but their notes are folded into one, which
	// keeps the first note: what must be read has an action of its own.
	actionMigrate = "MigrateStorageVersion"
	actionRetry   = "RetryStorageVersionMigration"

	// retryConflicts lets the writers that were met come to rest, as ToolHive's
	// migrator does, and waitForOthers is for another migrator to end.
	retryConflicts = 30 * time.Second
	waitForOthers  = 30 * time.Second

	// waitForStart is for API servers to serve a new CRD.
	waitForStart = time.Second

	// notConverging is the number of passes in a row after which it is reported.
	notConverging = 5

	// reportAgain is how long an API server keeps events, by default.
	reportAgain = time.Hour

	// concurrentDefinitions is enough for some that wait and one or two that run.
	concurrentDefinitions = 4

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
	// APIReader reads definitions and lists objects, live: mgr.GetAPIReader().
	APIReader client.Reader

	// SkipCRDMigrationPhases are not run. With both skipped, nothing is set up.
	SkipCRDMigrationPhases []Phase
	// Config names kinds, by a value of their Go type; any served version will do.
	Config map[client.Object]ByObjectConfig
	// Selector chooses definitions; its zero value, none. Config goes first.
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
	// walk.DefaultPageObjects, and 100 for definitions that Selector chose.
	PageSize int64
	// CacheGCInterval is how often what was written over an hour ago is
	// forgotten; 0 means 10 minutes.
	CacheGCInterval time.Duration

	// Policy is how to write and settle. Write is WritePatch unless it is set,
	// and WriteUpdate for definitions that Selector chose. SettleFromSight is
	// always on: the process may have come up a moment after a server came back.
	// SkipCRDMigrationPhases stands for SkipPhases.
	Policy Policy
	// Limiter paces every write and all that goes with it, but the lists of
	// objects, which go through APIReader; share it with the operator's other
	// migrators. Nil means one of its own.
	Limiter *walk.Limiter

	scope  scope
	clock  clock.PassiveClock // for tests; nil means the real one
	recent *recentWrites
	mu     sync.Mutex
	memory map[string]*memory // by name of the definition

	leasesUnread atomic.Bool // and that was said
}

// memory is what one reconciliation of a definition leaves to the next.
type memory struct {
	plan       *Plan     // of a run that waits for the servers to settle
	conflicted int       // passes in a row that met writes by others
	reported   time.Time // when that was last reported
	waiting    string    // what was last said about waiting
	clean      change    // where nothing was found to do, and so no annotation was written
}

// Reconcile brings one definition a step further. Every decision is made on what
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
	report, err := r.migrate(ctx, p, crd)
	if err != nil {
		return r.interrupted(ctx, crd, err)
	}
	return r.concluded(ctx, p, crd, report)
}

// nothingLeft: the annotation alone does not tell. Whoever restores a definition
// brings dirty storedVersions back without a new generation.
func (r *CRDMigrator) nothingLeft(p *profile, crd *apiextensionsv1.CustomResourceDefinition) bool {
	done := p.observes(crd) || r.remember(crd.Name).clean == change{crd.UID, crd.Generation}
	return done && (clean(crd) || r.skips(StorageVersionMigrationPhase))
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

// migrate plans and runs. A run that has to wait keeps its plan: to look at the
// servers again takes two requests, a plan ten.
func (r *CRDMigrator) migrate(ctx context.Context, p *profile, crd *apiextensionsv1.CustomResourceDefinition) (Report, error) {
	m := r.remember(crd.Name)
	if m.plan == nil || m.plan.UID != crd.UID || m.plan.Generation != crd.Generation {
		plan, err := p.migrator.Plan(ctx, crd.Name)
		if err != nil {
			return Report{}, err
		}
		if plan.ServersUnread != "" && !r.leasesUnread.Swap(true) { // it is true of every definition, every time
			log.FromContext(ctx).Info("The API servers can't be told apart, so time alone decides when to write", "why", plan.ServersUnread)
		}
		m.plan = &plan
	}
	progress, stop := r.logProgress(ctx)
	report, err := p.migrator.Run(ctx, *m.plan, progress)
	stop()
	if errors.As(err, new(*NotSettledError)) {
		return report, err
	}
	m.plan = nil
	return report, err
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

// interrupted says what follows a pass that did not reach its end.
func (r *CRDMigrator) interrupted(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, err error) (reconcile.Result, error) {
	var unsettled *NotSettledError
	var blocked *BlockedError
	var unlisted *UnlistedError
	switch {
	case errors.As(err, &unlisted) && unlisted.Starting:
		r.sayOnce(ctx, crd, err)
		return reconcile.Result{RequeueAfter: waitForStart}, nil
	case errors.As(err, &unsettled):
		if r.sayOnce(ctx, crd, err) && len(unsettled.Silent) > 0 {
			r.event(crd, corev1.EventTypeWarning, EventWaiting, actionMigrate, fmt.Sprintf(
				"%s; bring it back, or, if it is gone for good, remove its lease: kubectl delete lease -n kube-system %s", err, unsettled.Silent[0].Name))
		}
		return reconcile.Result{RequeueAfter: min(max(unsettled.Wait, time.Second), lookAgain)}, nil
	case errors.As(err, &blocked) && onlyOthersAtWork(blocked):
		r.sayOnce(ctx, crd, err)
		return reconcile.Result{RequeueAfter: waitForOthers}, nil
	}
	r.remember(crd.Name).waiting = ""
	switch {
	case errors.Is(err, ErrChanged), errors.Is(err, ErrOutOfScope), errors.Is(err, ErrNotFound):
		log.FromContext(ctx).Info("Stopped", "why", err.Error())
		return reconcile.Result{RequeueAfter: time.Second}, nil // the next look says what became of it
	case ctx.Err() == nil:
		r.event(crd, corev1.EventTypeWarning, EventFailed, actionMigrate, err.Error())
	}
	return reconcile.Result{}, err
}

func onlyOthersAtWork(e *BlockedError) bool {
	return !slices.ContainsFunc(e.Blockers, func(b godwit.Blocker) bool { return b.Reason != ReasonMigrationInProgress })
}

// sayOnce logs why nothing happens, unless that is what was said last. It reports
// whether it was news.
func (r *CRDMigrator) sayOnce(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, why error) bool {
	cause := fmt.Sprintf("%T", why) // the text changes every second
	var unsettled *NotSettledError
	if errors.As(why, &unsettled) {
		cause += join(unsettled.Servers) + "/" + join(unsettled.Silent)
	}
	m := r.remember(crd.Name)
	if m.waiting == cause {
		return false
	}
	m.waiting = cause
	log.FromContext(ctx).Info("Waiting", "why", why.Error())
	return true
}

// concluded says what follows a complete pass.
func (r *CRDMigrator) concluded(ctx context.Context, p *profile, crd *apiextensionsv1.CustomResourceDefinition, report Report) (reconcile.Result, error) {
	if report.Trimmed {
		stored := report.Checkpoint.StorageVersion // crd may be older than the run
		what := []any{"storageVersion", stored, "objects", report.Storage.Counts, "requests", report.Requests}
		if report.Candidates.Counts.Total() > 0 { // all that the cache offered is Skipped among the objects
			what = append(what, "candidates", report.Candidates.Counts)
		}
		log.FromContext(ctx).Info("Migrated", what...)
		r.event(crd, corev1.EventTypeNormal, EventSucceeded, actionMigrate, "every object is stored at "+stored)
	}
	err := report.Err()
	if errors.Is(err, ErrConflicts) {
		r.conflicted(ctx, crd, report)
		return reconcile.Result{RequeueAfter: retryConflicts}, nil
	}
	*r.remember(crd.Name) = memory{}
	if err != nil {
		logFailures(ctx, 0, report)
		r.event(crd, corev1.EventTypeWarning, EventFailed, actionMigrate, err.Error())
		return reconcile.Result{}, fmt.Errorf("migrate %s: %w", crd.Name, err)
	}
	if p == r.scope.selected && !report.wrote() { // it is left as it is, and GitOps has nothing to fight about
		r.remember(crd.Name).clean = change{crd.UID, crd.Generation}
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.markObserved(ctx, p, crd)
}

// conflicted reports conflicts that don't end, and again each hour: the event is
// gone by then.
func (r *CRDMigrator) conflicted(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, report Report) {
	m, err, now := r.remember(crd.Name), report.Err(), r.clock.Now()
	m.conflicted++
	if m.conflicted < notConverging || now.Sub(m.reported) < reportAgain {
		log.FromContext(ctx).V(1).Info("Others wrote at the same moment", "passes", m.conflicted, "what", err.Error())
		logFailures(ctx, 1, report)
		return
	}
	m.reported = now
	logFailures(ctx, 0, report)
	log.FromContext(ctx).Info("Pass after pass meets writes by others", "reason", ReasonNotConverging, "passes", m.conflicted, "what", err.Error())
	r.event(crd, corev1.EventTypeWarning, EventFailed, actionRetry, fmt.Sprintf("%s: %d passes in a row: %s", ReasonNotConverging, m.conflicted, err))
}

// logFailures logs each object that the report names, of the rewrite and of the
// cleanup: the error names the first alone.
func logFailures(ctx context.Context, verbosity int, report Report) {
	for _, f := range slices.Concat(report.Storage.Failures, report.ManagedFields.Failures) {
		log.FromContext(ctx).V(verbosity).Info("Object not migrated", "namespace", f.Namespace, "name", f.Name, "why", f.Reason)
	}
}

// markObserved writes down that this generation needs no more work. Should the
// definition have changed meanwhile, the next generation is not it.
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
