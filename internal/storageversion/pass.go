package storageversion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/internal/storageversion/listing"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
	"github.com/godwit-dev/godwit/walk"
)

// run is one call of Run. Only the goroutine of the caller, which also feeds the pages, uses
// its fields. The workers use the rewriter and the progress as well.
type run struct {
	*Migrator
	name     string
	evidence evidence.Run
	source   source
	rewriter *rewriter
	progress *progress

	cached  walk.Report // of the candidates
	storage walk.Report
	trimmed bool
}

func (m *Migrator) newRun(crd string, progress func(decision.Report)) *run {
	w := m.newRewriter()
	return &run{
		Migrator: m, name: crd, rewriter: w, progress: newProgress(progress),
		evidence: evidence.NewRun(crd, m.options.Journal, m.client.Clock.Now, &w.baseline),
		source:   source{list: m.list(), borrowed: m.options.List != nil},
	}
}

func (r *run) report() decision.Report {
	return decision.Report{
		Storage: r.storage, Candidates: r.cached, ManagedFields: r.rewriter.tally.report(),
		Requests: r.progress.requests.Load(), Trimmed: r.trimmed, Checkpoint: r.evidence.Checkpoint(),
	}
}

// epoch is the CRD as the run last read it.
func (r *run) epoch() *epoch { return r.rewriter.epoch.Load() }

func (r *run) setCRD(crd *apiextensionsv1.CustomResourceDefinition) {
	r.rewriter.epoch.Store(r.epochOf(crd))
}

// pass visits every object once.
func (r *run) pass(ctx context.Context, beforePage func(context.Context, walk.Report) error) error {
	var err error
	r.progress.begin()
	pages := walk.ListOptions{PageObjects: r.options.PageObjects, Attempts: r.options.Attempts, Retry: r.retry}
	r.storage, err = walk.Run(ctx, r.settledPages(ctx, r.source.list.Objects(ctx, r.epoch().gvr, pages)), r.rewriter.visit, walk.Options{
		Limiter:     r.options.Limiter,
		Attempts:    r.options.Attempts,
		Retry:       r.retry,
		Cause:       cause,
		Reason:      FailureReason,
		MaxFailures: r.options.MaxFailures,
		OnPage:      beforePage,
		OnEnd:       r.rewriter.tally.end,
		OnObject: func(w walk.Report) {
			r.progress.report(func(now *decision.Report) {
				now.Storage, now.Candidates, now.ManagedFields, now.Waiting = w, r.cached, r.rewriter.tally.report(), ""
			})
		},
	})
	r.advanceCursor(r.storage.Cursor)
	var list *listing.Error
	switch {
	case errors.As(err, &list) && ctx.Err() == nil:
		return fmt.Errorf("migrate %s: %w", r.name, r.unlisted(ctx, r.epoch().crd, list))
	case err != nil:
		return fmt.Errorf("migrate %s: %w", r.name, err)
	}
	return nil
}

// settle returns a [decision.NotSettledError] until the servers have settled. A checkpoint is evidence that they have, unless
// the CRD has changed since: a server with an earlier schema would prune what users write to the fields of the next one.
func (r *run) settle(ctx context.Context) error {
	if p := r.evidence.Checkpoint().Proof; r.evidence.Since() != "" && p != nil && p.Generation == r.epoch().key.Generation {
		return nil
	}
	return request.Retry(ctx, func(ctx context.Context) error { return r.checkSettled(ctx, r.epoch().crd) })
}

// settledPages are the pages of a list. A run that only cleans managedFields settles at the first page with an object to clean: most
// of these runs find none, and need not wait.
func (r *run) settledPages(ctx context.Context, pages walk.Source[*metav1.PartialObjectMetadata]) walk.Source[*metav1.PartialObjectMetadata] {
	if !r.evidence.IsStored() || r.options.DryRun {
		return pages
	}
	stale := func(o *metav1.PartialObjectMetadata) bool { return r.epoch().cleaner.Stale(o.ManagedFields) }
	return func(yield func(walk.Page[*metav1.PartialObjectMetadata], error) bool) {
		settled := false
		for page, err := range pages {
			if err == nil && !settled && slices.ContainsFunc(page.Items, stale) {
				err = r.settle(ctx)
				settled = err == nil
			}
			if !yield(page, err) || err != nil {
				return
			}
		}
	}
}

// retry is the retry of the package, and reports the answer for which the run waits.
func (r *run) retry(err error) (time.Duration, bool) {
	wait, again := retry(err)
	if again {
		r.progress.report(func(now *decision.Report) { now.Waiting = quote.Line(apierror.Message(err)) })
	}
	return wait, again
}

// beforePage checks that the list and the CRD are still those of the evidence, and saves
// the checkpoint: always before the first write, and the cursor now and then.
func (r *run) beforePage(ctx context.Context, w walk.Report) error {
	if err := r.checkCoverage(ctx, w); err != nil {
		return err
	}
	if err := r.ensureCheckpoint(ctx, w.ResourceVersion); err != nil || r.evidence.IsStored() {
		return err
	}
	r.advanceCursor(w.Cursor)
	return r.evidence.SaveNowAndThen(ctx)
}

// checkCoverage adds a page to the coverage of the list, before an object of the page is written.
// It returns a [listing.IncompleteError] if the list misses objects or is too old.
func (r *run) checkCoverage(ctx context.Context, w walk.Report) error {
	if since := r.evidence.Since(); r.source.borrowed && since != "" {
		if stale, err := evidence.Newer(since, w.ResourceVersion); err != nil || stale {
			return errors.Join(err, &listing.IncompleteError{Resource: r.epoch().gvr.GroupResource(), Reader: true})
		}
	}
	c := &r.source.coverage
	if c.ResourceVersion != "" {
		c.Continued = c.Continued || w.ResourceVersion != c.ResourceVersion
		return nil
	}
	c.ResourceVersion, c.Promised, c.Counted = w.ResourceVersion, w.Remaining, w.Remaining
	err := request.Retry(ctx, func(ctx context.Context) (err error) {
		c.Counted, err = r.client.CountAt(ctx, r.epoch().gvr, w.ResourceVersion)
		return err
	})
	if err != nil {
		return fmt.Errorf("count %s: %w", r.epoch().gvr.GroupResource(), err)
	}
	if c.Counted == kube.UnknownCount && !r.source.borrowed {
		c.Counted = c.Promised
	}
	if c.Begun() == listing.Refuted {
		return r.incomplete(c.Promised, r.source.borrowed)
	}
	return nil
}

func (r *run) incomplete(listed int64, reader bool) error {
	return &listing.IncompleteError{Resource: r.epoch().gvr.GroupResource(), Listed: listed, Counted: r.source.coverage.Counted, Live: true, Reader: reader}
}

// ensureCheckpoint checks that the checkpoint holds for objects that were listed at a
// resourceVersion. If there is no checkpoint yet, it saves one with this resourceVersion.
func (r *run) ensureCheckpoint(ctx context.Context, listed string) error {
	if err := request.Retry(ctx, r.recheck); err != nil || r.evidence.IsStored() {
		return err
	}
	since := r.evidence.Since()
	if since == "" {
		return r.evidence.Begin(ctx, listed, r.options.Terms())
	}
	older, err := evidence.Newer(since, listed)
	if err == nil && !older {
		return nil
	}
	r.evidence.Void()
	r.options.Recent.Forget(r.epoch().key.UID)
	return errors.Join(err, fmt.Errorf("%w: %s was listed at resourceVersion %s, which is older than the checkpoint: was etcd restored?",
		decision.ErrChanged, r.epoch().gvr.GroupResource(), listed))
}

// advanceCursor moves the checkpoint's cursor forward. Only the API server's own list shows
// every object before the cursor. A list of an embedder's reader moves no cursor: a run that
// resumes then finds the rewritten objects by their resourceVersion.
func (r *run) advanceCursor(key string) {
	if !r.source.borrowed {
		r.evidence.AdvanceCursor(key)
	}
}

// passOverAll visits every object that the API server has. If the number of objects that an
// embedder's reader lists can't be compared with the API server's, a second pass uses the API
// server's own list: each object that this pass rewrites was missing in the reader's list.
func (r *run) passOverAll(ctx context.Context) error {
	if err := r.pass(ctx, r.beforePage); err != nil {
		return err
	}
	first := r.storage
	listed := first.Counts.Total()
	switch proof := r.source.coverage.Ended(listed); {
	case proof == listing.Refuted:
		r.evidence.DropCursor()
		return r.incomplete(listed, r.source.borrowed)
	case proof == listing.Proven, !r.source.borrowed, !first.Counts.Settled():
		return nil
	}
	r.source = source{list: r.client.Objects}
	r.evidence.ListAnew()
	if err := r.pass(ctx, r.beforePage); err != nil {
		return err
	}
	second := r.storage.Counts
	switch {
	case second.Migrated > 0:
		r.source.coverage.Counted = second.Total()
		return r.incomplete(listed, true)
	case second.Settled():
		r.storage = first
	}
	return nil
}

// recheck checks that the CRD is still the one that the evidence is about.
func (r *run) recheck(ctx context.Context) error {
	now := r.epoch()
	m, err := r.client.CRDMetadata(ctx, r.name)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %s was deleted", decision.ErrChanged, r.name)
	case err != nil:
		return fmt.Errorf("read %s again: %w", r.name, err)
	}
	if err := now.checkExists(m); err != nil {
		return err
	}
	if r.options.BeforePage != nil {
		if err := r.options.BeforePage(ctx, m); err != nil {
			return err
		}
	}
	if m.Generation == now.key.Generation {
		return r.recheckAnswering(ctx)
	}
	crd, err := r.client.CRD(ctx, r.name)
	if err != nil {
		return crdReadError(r.name, err)
	}
	resumed, err := now.resume(crd, r.evidence.Checkpoint(), r.options.Write)
	if err != nil {
		return err
	}
	if !values.KeepAlike(now.crd, crd) {
		r.evidence.Resume(resumed)
		return fmt.Errorf("%w: a schema or the conversion of %s changed at generation %d; writes wait until each API server uses it", decision.ErrChanged, r.name, crd.Generation)
	}
	if resumed.Proof != nil {
		proof := *resumed.Proof
		proof.Generation, resumed.Proof = crd.Generation, &proof
	}
	r.setCRD(crd)
	r.evidence.Resume(resumed)
	return r.recheckAnswering(ctx)
}

// recheckAnswering checks that the server which answers has the storage version. If it does not, then writes since the last check
// may have been at the old version: the evidence proves nothing any more.
func (r *run) recheckAnswering(ctx context.Context) error {
	if r.evidence.IsStored() {
		return nil
	}
	return r.voidIfLate(r.checkAnswering(ctx, r.epoch().crd))
}

// voidIfLate drops the evidence if a server has not adopted the storage version.
func (r *run) voidIfLate(err error) error {
	if late := (*decision.NotSettledError)(nil); !errors.As(err, &late) {
		return err
	}
	r.evidence.Void()
	r.options.Recent.Forget(r.epoch().key.UID)
	return fmt.Errorf("%w: %w", decision.ErrChanged, err)
}

// source is the list that a pass visits, and how many objects it has shown.
type source struct {
	list     listing.Lister
	borrowed bool // list is an embedder's reader
	coverage listing.Coverage
}

// latest reads the present resourceVersion from the API server. An embedder's reader may be
// behind it, even behind the change of the storage version.
func (r *run) latest(ctx context.Context) (resourceVersion string, err error) {
	err = request.Retry(ctx, func(ctx context.Context) error {
		page, _, err := listing.Lister(r.client.Objects).Page(ctx, r.epoch().gvr, 1, "")
		resourceVersion = page.ResourceVersion
		return err
	})
	if list := (*listing.Error)(nil); errors.As(err, &list) && ctx.Err() == nil {
		err = r.unlisted(ctx, r.epoch().crd, list)
	}
	return resourceVersion, err
}

// migrateCached rewrites the candidates of an embedder's cache. The pass over all objects
// follows: it tries again and counts what fails here, and does the cleanups. The
// resourceVersion of the checkpoint comes from the API server itself, since the cache may be
// behind it.
func (r *run) migrateCached(ctx context.Context) error {
	if r.source.borrowed {
		latest, err := r.latest(ctx)
		if err != nil {
			return err
		}
		if err := r.ensureCheckpoint(ctx, latest); err != nil {
			return err
		}
	}
	if r.options.Candidates == nil {
		return nil
	}
	candidates, err := r.options.Candidates(ctx)
	if err != nil {
		return fmt.Errorf("read %s from the cache: %w", r.epoch().gvr.GroupResource(), err)
	}
	pages := func(yield func(walk.Page[*metav1.PartialObjectMetadata], error) bool) {
		remaining := len(candidates)
		for items := range slices.Chunk(candidates, walk.DefaultPageObjects) {
			remaining -= len(items)
			if !yield(walk.Page[*metav1.PartialObjectMetadata]{Items: items, ResourceVersion: r.evidence.Since(), Remaining: int64(remaining)}, nil) {
				return
			}
		}
	}
	r.cached, err = walk.Run(ctx, pages, r.rewriter.visitCandidate, walk.Options{
		Limiter: r.options.Limiter, Attempts: r.options.Attempts, Retry: retry, Cause: cause, Reason: FailureReason, MaxFailures: r.options.MaxFailures,
		OnPage: func(ctx context.Context, w walk.Report) error { return r.ensureCheckpoint(ctx, w.ResourceVersion) },
		OnObject: func(w walk.Report) {
			r.progress.report(func(now *decision.Report) { *now = decision.Report{Candidates: w} })
		},
	})
	if err != nil {
		return fmt.Errorf("migrate %s, as the cache has them: %w", r.name, err)
	}
	return nil
}
