package crdmigrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// saveEvery bounds how often the cursor is saved: it spares a resumed run
	// requests, while each save is a write that every watcher of definitions
	// gets to see.
	saveEvery = 10 * time.Second

	// saveTimeout is for the last save of a run whose context has ended.
	saveTimeout = 5 * time.Second
)

// Run carries a plan out: settle, rewrite, trim. It returns a true report in
// every case, and
//   - a [BlockedError] for a plan with blockers that waiting does not cure, and for a
//     run that has only managedFields to clean and lacks the permission;
//   - an [UnlistedError] when the API server does not list the objects;
//   - a [NotSettledError] while nothing may be written yet: call again;
//   - [ErrChanged] when the plan no longer fits: observe and plan again;
//   - the context's cause, after the writes under way were counted and the
//     checkpoint was saved;
//   - no error after a complete pass, also when objects failed: then the report
//     counts and names them, and nothing is trimmed.
//
// progress, which may be nil, is called after each object and before each wait for
// another attempt, one call at a time, and must be quick.
func (m *Migrator) Run(ctx context.Context, p Plan, progress func(Report)) (Report, error) {
	if refusals := p.Refusals(); len(refusals) > 0 {
		return Report{}, &BlockedError{CRD: p.Name, Blockers: refusals}
	}
	if u := p.Unlisted; u != nil && p.State == StateUnknown && u.Reason != ReasonThrottled && u.Reason != ReasonServerError {
		return Report{}, u // a pass that begins with such a list takes minutes to say the same
	}
	r := &run{Migrator: m, name: p.Name, progress: progress, list: m.list, borrowed: m.borrowed}
	ctx = kube.CountRequests(ctx, &r.requests)
	err := r.run(ctx, p)
	return r.report(), err
}

// run is one call of Run.
type run struct {
	*Migrator
	name     string
	progress func(Report)

	list     lister
	borrowed bool
	coverage coverage // of the pass

	resource    schema.GroupVersionResource
	kind        string // never changes; the workers must not read crd, which a page's hook replaces
	crd         *apiextensionsv1.CustomResourceDefinition
	checkpoint  Checkpoint
	since       string    // C: set before the first object is acted on, then fixed
	cursor      string    // of the run before: keys up to it are done
	journaled   bool      // the journal holds something
	saved       time.Time // by the server's clock
	cleaner     atomic.Pointer[fieldsCleaner]
	spec        atomic.Pointer[change] // what crd was adopted as, for the workers
	mayNotClean atomic.Pointer[error]
	stored      bool        // nothing is at another version, or that phase is skipped
	offered     walk.Report // of the candidates
	storage     walk.Report
	fields      sideTally
	requests    atomic.Int64
	telling     sync.Mutex
	told        Report // of the pass under way, for progress
	trimmed     bool
}

func (r *run) report() Report {
	return Report{Storage: r.storage, Candidates: r.offered, ManagedFields: r.fields.report(), Requests: r.requests.Load(), Trimmed: r.trimmed, Checkpoint: r.checkpoint}
}

func (r *run) run(ctx context.Context, p Plan) error {
	if err := persist(ctx, func(ctx context.Context) error { return r.begin(ctx, p) }); err != nil {
		return err
	}
	if r.options.DryRun {
		return r.pass(ctx, nil)
	}
	r.stored = clean(r.crd) || r.skips(StorageVersionMigrationPhase)
	if r.stored {
		return r.onlyClean(ctx)
	}
	if r.since == "" {
		if err := persist(ctx, func(ctx context.Context) error { return r.settled(ctx, r.crd) }); err != nil {
			return err
		}
	}
	err := r.passes(ctx)
	if err != nil || !r.storage.Counts.Settled() {
		// What went wrong may only show that the definition changed.
		if changed := r.recheck(ctx); errors.Is(changed, ErrChanged) {
			err = changed
		}
	}
	if err != nil {
		r.saveLast(ctx, err)
		return err
	}
	if !r.storage.Counts.Settled() || r.options.NoTrim {
		return r.save(ctx)
	}
	if r.options.BeforePage != nil { // the pass may have taken long since the last page
		if err := persist(ctx, r.recheck); err != nil {
			r.saveLast(ctx, err)
			return err
		}
	}
	// First the checkpoint goes, then the old versions: what is left of a trimmed
	// definition must not be evidence for a later run, which somebody starts who
	// knows better.
	if err := r.forget(ctx); err != nil {
		return err
	}
	if err := r.trim(ctx); err != nil {
		r.saveLast(ctx, err)
		return err
	}
	return nil
}

// onlyClean is a run without a rewrite: the objects are visited for their
// managedFields alone.
func (r *run) onlyClean(ctx context.Context) error {
	if !r.skips(CleanupManagedFieldsPhase) {
		if err := r.passOverAll(ctx); err != nil {
			return err
		}
	}
	if r.mayNotClean.Load() != nil {
		grant := cleanupGrant(r.resource.GroupResource())
		return &BlockedError{CRD: r.name, Blockers: []godwit.Blocker{forbidden(kube.UserName(ctx, r.client), grant)}}
	}
	if !clean(r.crd) {
		return nil
	}
	return r.forget(ctx)
}

func (r *run) skips(phase Phase) bool { return r.options.skips(phase) }

// adopt makes the definition, as it was read, the one that the run is about.
func (r *run) adopt(crd *apiextensionsv1.CustomResourceDefinition) {
	r.crd = crd
	r.cleaner.Store(r.cleanerOf(crd))
	r.spec.Store(&change{crd.UID, crd.Generation})
}

// begin reads the definition anew and refuses a plan that was made for another
// one.
func (r *run) begin(ctx context.Context, p Plan) error {
	crd, err := r.client.CRD(ctx, r.name)
	if err != nil {
		return notFound(r.name, err)
	}
	if crd.DeletionTimestamp != nil {
		return fmt.Errorf("%w: %w", ErrChanged, &BlockedError{CRD: r.name, Blockers: checkServing(Facts{CRD: crd}, Policy{})})
	}
	if crd.UID != p.UID || crd.Generation != p.Generation {
		return fmt.Errorf("%w: %s is not what was planned for", ErrChanged, r.name)
	}
	r.adopt(crd)
	r.resource, r.kind = p.Resource, crd.Spec.Names.Kind
	earlier, err := r.options.Journal.Load(ctx, crd)
	if err != nil {
		return fmt.Errorf("load the checkpoint of %s: %w", r.name, err)
	}
	r.journaled = !earlier.isZero()
	if resumed, ok := earlier.resume(crd); ok && earlier.holds(crd, r.options.Policy) {
		r.checkpoint, r.since, r.cursor = resumed, resumed.ResourceVersion, resumed.Cursor
	} else {
		r.checkpoint = earlier.begin(crd, r.client.Clock.Now())
	}
	return nil
}

// pass visits every object once.
func (r *run) pass(ctx context.Context, beforePage func(context.Context, walk.Report) error) error {
	var err error
	r.told.Storage.Remaining = -1
	pages := walk.ListOptions{PageObjects: r.options.PageObjects, Attempts: r.options.Attempts, Retry: r.retry}
	r.storage, err = walk.Run(ctx, r.list.objects(ctx, r.resource, pages), r.visit, walk.Options{
		Limiter:  r.options.Limiter,
		Attempts: r.options.Attempts,
		Retry:    r.retry,
		Cause:    cause,
		OnPage:   beforePage,
		OnEnd:    r.fields.end,
		OnObject: func(w walk.Report) {
			r.tell(func(now *Report) {
				now.Storage, now.Candidates, now.ManagedFields, now.Waiting = w, r.offered, r.fields.report(), ""
			})
		},
	})
	r.moveCursor(r.storage.Cursor)
	var list *listError
	switch {
	case errors.As(err, &list) && ctx.Err() == nil:
		return fmt.Errorf("migrate %s: %w", r.name, r.unlisted(list))
	case err != nil:
		return fmt.Errorf("migrate %s: %w", r.name, err)
	}
	return nil
}

// tell reports progress, one call at a time.
func (r *run) tell(update func(*Report)) {
	if r.progress == nil {
		return
	}
	r.telling.Lock()
	defer r.telling.Unlock()
	update(&r.told)
	r.told.Requests = r.requests.Load()
	r.progress(r.told)
}

// retry is the package's, and tells what is waited for.
func (r *run) retry(err error) (time.Duration, bool) {
	wait, again := retry(err)
	if again {
		r.tell(func(now *Report) { now.Waiting = quote.Line(apierror.Message(err)) })
	}
	return wait, again
}

// listError tells a list that failed from all else that ends a pass.
type listError struct{ error }

func (e *listError) Unwrap() error { return e.error }

// unlisted classifies the answer to a list.
func (r *run) unlisted(err error) *UnlistedError {
	e := unlisted(r.crd, err)
	e.Starting = e.starting(r.crd, r.client.Clock.Now())
	return e
}

// moveCursor moves the checkpoint's cursor forward. Only the API server's own list shows
// every object before it: a list of an embedder's reader moves no cursor, and a run that
// resumes skips what it has rewritten by resourceVersion.
func (r *run) moveCursor(key string) {
	if r.borrowed {
		return
	}
	r.checkpoint.Cursor = max(r.checkpoint.Cursor, key)
}

// objects walks over the metadata of all objects of a resource.
func (l lister) objects(ctx context.Context, resource schema.GroupVersionResource, o walk.ListOptions) walk.Source[*metav1.PartialObjectMetadata] {
	fetch := func(ctx context.Context, limit int64, token string) (walk.Page[*metav1.PartialObjectMetadata], string, error) {
		return l.page(ctx, resource, limit, token)
	}
	return walk.List(ctx, fetch, o)
}

func (l lister) page(ctx context.Context, resource schema.GroupVersionResource, limit int64, token string) (walk.Page[*metav1.PartialObjectMetadata], string, error) {
	list, err := l(ctx, resource, limit, token)
	switch {
	case err != nil:
		return walk.Page[*metav1.PartialObjectMetadata]{}, "", &listError{fmt.Errorf("list %s: %w", resource.GroupResource(), apierror.RetryForbidden(err))}
	case list.ResourceVersion == "" || list.ResourceVersion == "0":
		return walk.Page[*metav1.PartialObjectMetadata]{}, "", &IncompleteListError{Resource: resource.GroupResource(), Reader: true}
	}
	page := walk.Page[*metav1.PartialObjectMetadata]{
		Items:           make([]*metav1.PartialObjectMetadata, len(list.Items)),
		ResourceVersion: list.ResourceVersion,
		Remaining:       kube.Remaining(list),
	}
	for i := range list.Items {
		item := list.Items[i] // on its own: one that waits for another attempt must not hold the whole page
		page.Items[i] = &item
	}
	return page, list.Continue, nil
}

// beforePage makes sure that what was true when the run began still is, and
// that the checkpoint is saved before the first write.
func (r *run) beforePage(ctx context.Context, w walk.Report) error {
	if err := r.cover(ctx, w); err != nil {
		return err
	}
	if err := r.hold(ctx, w.ResourceVersion); err != nil || r.stored {
		return err
	}
	r.moveCursor(w.Cursor)
	if now := r.client.Clock.Now(); now.Sub(r.saved) >= saveEvery {
		return r.save(ctx)
	}
	return nil
}

// hold makes sure that the evidence holds for what was listed at a
// resourceVersion, which becomes the evidence where there is none yet.
func (r *run) hold(ctx context.Context, listed string) error {
	if err := persist(ctx, r.recheck); err != nil || r.stored {
		return err
	}
	if r.since == "" {
		r.since = listed
		r.checkpoint.ResourceVersion = r.since
		r.checkpoint.Settled = metav1.Duration{Duration: r.options.settle()}
		r.checkpoint.AcceptedSilent = r.options.AcceptSilentServers
		return r.save(ctx)
	}
	older, err := newer(r.since, listed)
	if err == nil && !older {
		return nil
	}
	r.checkpoint.ResourceVersion, r.checkpoint.Cursor = "", ""
	r.recent.forget(r.crd.UID)
	return errors.Join(err, fmt.Errorf("%w: %s was listed at resourceVersion %s, which is older than the checkpoint: was etcd restored?",
		ErrChanged, r.resource.GroupResource(), listed))
}

// recheck looks whether the definition is still the one the evidence is about.
func (r *run) recheck(ctx context.Context) error {
	m, err := r.client.crdMetadata(ctx, r.name)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %s was deleted", ErrChanged, r.name)
	case err != nil:
		return fmt.Errorf("look at %s again: %w", r.name, err)
	case m.UID != r.crd.UID:
		return fmt.Errorf("%w: %s was deleted and created again", ErrChanged, r.name)
	case m.DeletionTimestamp != nil:
		return fmt.Errorf("%w: %s is being deleted", ErrChanged, r.name)
	}
	if r.options.BeforePage != nil {
		if err := r.options.BeforePage(ctx, m); err != nil {
			return err
		}
	}
	if m.Generation == r.crd.Generation {
		return nil
	}
	crd, err := r.client.CRD(ctx, r.name)
	if err != nil {
		return notFound(r.name, err)
	}
	resumed, ok := r.checkpoint.resume(crd)
	if !ok {
		moved := fmt.Sprintf("its spec moved from generation %d to %d", r.crd.Generation, crd.Generation)
		if now := kube.StorageVersion(crd); now != r.checkpoint.StorageVersion {
			moved += fmt.Sprintf(" and stores %q instead of %q", now, r.checkpoint.StorageVersion)
		}
		return fmt.Errorf("%w: %s (written by %s)", ErrChanged, moved, strings.Join(specManagers(crd), ", "))
	}
	if !kube.Serves(crd, r.resource.Version) {
		return fmt.Errorf("%w: %s no longer serves its storage version %s", ErrChanged, r.name, r.resource.Version)
	}
	if r.options.Write.Subresource() != "" && !kube.HasStatus(crd) {
		return fmt.Errorf("%w: %s no longer has /status at its storage version %s", ErrChanged, r.name, r.resource.Version)
	}
	r.adopt(crd)
	r.checkpoint = resumed
	return nil
}

// rewrite writes one object. What the server threw away of its managedFields
// while it did so is lost, and no matter of the outcome.
func (r *run) rewrite(ctx context.Context, o *metav1.PartialObjectMetadata) (outcome godwit.Outcome, lost, err error) {
	after, err := r.write(ctx, o)
	switch {
	case apierrors.IsNotFound(err):
		outcome, err = r.confirmGone(ctx, o)
		return outcome, nil, err
	case apierrors.IsConflict(err):
		outcome, err = r.conflict(ctx, o, err)
		return outcome, nil, err
	case err != nil:
		return godwit.Failed, nil, apierror.RetryForbidden(err)
	case r.options.DryRun:
		return godwit.Skipped, nil, nil
	case deletionCompleted(after):
		return godwit.Gone, nil, nil
	}
	r.recent.add(r.spec.Load().writtenAs(after))
	if after.ResourceVersion == o.ResourceVersion {
		return godwit.Unchanged, nil, nil
	}
	lost = dropped(o, after)
	o.ResourceVersion, o.ManagedFields = after.ResourceVersion, after.ManagedFields // for another visit
	return godwit.Migrated, lost, nil
}

// deletionCompleted: nothing held the object any more, and the write ended it.
func deletionCompleted(after *metav1.PartialObjectMetadata) bool {
	return after.DeletionTimestamp != nil && len(after.Finalizers) == 0
}

// done reports whether there is evidence that makes a write needless.
func (r *run) done(o *metav1.PartialObjectMetadata) (bool, error) {
	if r.stored {
		return true, nil
	}
	if r.since == "" {
		return false, nil // a dry run
	}
	if r.cursor != "" && walk.Key(o) <= r.cursor {
		return true, nil
	}
	if done, err := newer(o.ResourceVersion, r.since); done || err != nil {
		return done, err
	}
	return r.recent.has(r.spec.Load().writtenAs(o)), nil
}

// newer compares two resourceVersions of one resource.
func newer(a, b string) (bool, error) {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return false, fmt.Errorf("compare resourceVersions %q and %q: %w", a, b, err)
	}
	return order > 0, nil
}

// errStillThere asks for another attempt.
var errStillThere = errors.New("the write answered 404, but the object is listed")

// confirmGone looks at the collection, because a 404 may also mean that the
// version is no longer served, and then nothing at all was migrated.
func (r *run) confirmGone(ctx context.Context, o *metav1.PartialObjectMetadata) (godwit.Outcome, error) {
	found, err := r.client.Find(ctx, r.resource, o)
	switch {
	case err != nil:
		return godwit.Failed, fmt.Errorf("confirm that %s is gone: %w", walk.Key(o), apierror.RetryForbidden(err))
	case found != nil:
		return godwit.Failed, errStillThere
	}
	return godwit.Gone, nil
}

// retry is apierror.Transient and the two answers that only mean "again" for a write
// that changes nothing.
func retry(err error) (time.Duration, bool) {
	if errors.Is(err, errStillThere) || apierrors.IsConflict(err) {
		return 0, true
	}
	return apierror.Transient(err)
}

// Causes names the webhooks and policies that failures come from, each once and
// sorted, as far as the API server's words tell.
func Causes(failures []godwit.Failure) []string {
	var names []string
	for _, f := range failures {
		if by := apierror.Parse(0, f.Reason).Origin; by.Name != "" {
			names = append(names, by.String())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// cause names what a write fails for where that is not the API server: others of
// its objects may never meet it.
func cause(err error) string {
	if err == nil {
		return ""
	}
	if by := apierror.Of(err).Origin; by.Name != "" {
		return by.String()
	}
	if errors.Is(err, errStillThere) || apierrors.IsConflict(err) {
		return "writes by other clients"
	}
	return walk.CauseOf(err)
}

// persist is walk.Retry for the requests between the writes.
func persist(ctx context.Context, f func(context.Context) error) error {
	return walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error { return apierror.RetryForbidden(f(ctx)) })
}
