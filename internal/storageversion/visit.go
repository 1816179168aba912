package storageversion

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/internal/storageversion/managedfields"
	"github.com/godwit-dev/godwit/internal/storageversion/recent"
	"github.com/godwit-dev/godwit/walk"
)

// cleanupConflicts bounds the attempts to clean one object that other clients
// write meanwhile. After that, the object is left to another run.
const cleanupConflicts = 3

// visit is the action on one object. An object may need the rewrite and the cleanup. The
// cleanup is a write through the storage version, so that it does both.
func (r *rewriter) visit(ctx context.Context, o *metav1.PartialObjectMetadata) (godwit.Outcome, error) {
	done, err := r.done(o)
	if err != nil {
		return godwit.Failed, err
	}
	cleaner := r.epoch.Load().cleaner
	if _, stale := cleaner.Clean(o.ManagedFields); !stale || r.options.DryRun || r.options.Skips(decision.CleanupManagedFieldsPhase) {
		if done {
			return godwit.Skipped, nil
		}
		return r.rewriteAlone(ctx, o)
	}
	seen, cleaned, why := r.cleanup(ctx, cleaner, o)
	if apierror.IsEndOfRun(why) {
		return godwit.Failed, why
	}
	outcome, lost, err := r.finishRewrite(ctx, seen, cleaned, done)
	switch {
	case lost != nil:
		cleaned, why = godwit.Failed, lost
	case cleaned == godwit.Migrated && why != nil:
		cleaned = godwit.Failed // the object was written, but lost more entries than the stale ones
	}
	_, again := retry(err)
	if _, transient := walk.Transient(why); err == nil && cleaned == godwit.Deferred && transient { // an object with conflicts is left to another run
		again, err = true, &walk.UnfinishedError{Cause: why}
	}
	if again {
		r.tally.expect(o, cleaned, why) // the object is visited again, unless its attempts are used up
	} else {
		r.tally.add(o, cleaned, why)
	}
	return outcome, err
}

// rewriteAlone rewrites an object that needs no cleanup. If the object loses its
// managedFields, this counts as a failed cleanup.
func (r *rewriter) rewriteAlone(ctx context.Context, o *metav1.PartialObjectMetadata) (godwit.Outcome, error) {
	outcome, lost, err := r.rewrite(ctx, o)
	if lost != nil {
		r.tally.add(o, godwit.Failed, lost)
	}
	return outcome, err
}

func (r *rewriter) visitCandidate(ctx context.Context, o *metav1.PartialObjectMetadata) (godwit.Outcome, error) {
	done, err := r.done(o)
	switch {
	case err != nil:
		return godwit.Failed, err
	case done, !r.options.Skips(decision.CleanupManagedFieldsPhase) && r.epoch.Load().cleaner.Stale(o.ManagedFields):
		return godwit.Skipped, nil
	}
	return r.rewriteAlone(ctx, o)
}

// finishRewrite returns the outcome of the rewrite of an object after its cleanup. If the
// cleanup did not write the object, it rewrites it: a failed cleanup must not keep the
// object at the old version.
func (r *rewriter) finishRewrite(ctx context.Context, seen *metav1.PartialObjectMetadata, cleaned godwit.Outcome, done bool) (outcome godwit.Outcome, lost, err error) {
	switch {
	case cleaned == godwit.Gone:
		return godwit.Gone, nil, nil
	case done:
		return godwit.Skipped, nil, nil
	case cleaned == godwit.Migrated:
		r.recent.Add(recent.Of(r.epoch.Load().key, seen))
		return godwit.Migrated, nil, nil
	}
	fresh, err := r.baseline.Load().Fresh(seen.ResourceVersion)
	switch {
	case err != nil:
		return godwit.Failed, nil, err
	case fresh:
		return godwit.Skipped, nil, nil // another client wrote it meanwhile
	}
	return r.rewrite(ctx, seen)
}

// cleanup removes the stale entries of one object. It returns the object as it was last
// read, the outcome of the cleanup, and its cause. The outcome is Deferred after conflicts,
// and after a fault that may end by itself.
func (r *rewriter) cleanup(ctx context.Context, cleaner *managedfields.Cleaner, o *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, godwit.Outcome, error) {
	if refused := r.cleanupRefused.Load(); refused != nil {
		return o, godwit.Failed, r.notCleaned(*refused)
	}
	for attempt := 1; ; attempt++ {
		entries, stale := cleaner.Clean(o.ManagedFields)
		if !stale {
			return o, godwit.Unchanged, nil // another client cleaned it
		}
		after, err := r.client.SetManagedFields(ctx, r.epoch.Load().gvr, o, entries)
		err = apierror.RetryForbidden(err)
		switch {
		case err == nil && request.Ended(after):
			return after, godwit.Gone, nil
		case err == nil && cleaner.Stale(after.ManagedFields):
			return after, godwit.Failed, managedfields.ErrKept
		case err == nil:
			return after, godwit.Migrated, managedfields.Dropped(o, after)
		case apierrors.IsNotFound(err):
			outcome, err := r.confirmGone(ctx, o)
			return o, outcome, err
		case apierror.IsForbidden(err) && (r.baseline.Load().Stored || !r.options.Write.OrDefault().PatchesObject()):
			return o, godwit.Failed, r.notCleaned(r.stopCleanups(ctx))
		case !apierrors.IsConflict(err):
			return o, r.cleanupOutcome(ctx, err), fmt.Errorf("clean managedFields: %w", err)
		case attempt == cleanupConflicts:
			return o, godwit.Deferred, fmt.Errorf("clean managedFields, %d conflicts: %w", attempt, err)
		}
		current, err := r.readAfterConflict(ctx, o)
		switch {
		case errors.Is(err, decision.ErrChanged):
			return o, godwit.Deferred, err
		case err != nil:
			return o, r.cleanupOutcome(ctx, err), fmt.Errorf("clean managedFields, read the object again after a conflict: %w", err)
		case current == nil:
			return o, godwit.Gone, nil
		}
		o = current
	}
}

// readAfterConflict reads an object that another client has written. Then it checks that the CRD has not changed: the client may
// have written a new field that the API server of the cleanup does not know yet, and would prune, or the object may be of another CRD
// with the same name.
func (r *rewriter) readAfterConflict(ctx context.Context, o *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	e := r.epoch.Load()
	current, err := r.client.Find(ctx, e.gvr, o)
	if err != nil || current == nil || e.crd == nil {
		return current, err
	}
	crd, err := r.client.CRDMetadata(ctx, e.crd.Name)
	if err != nil {
		return current, err
	}
	if err := e.checkExists(crd); err != nil {
		return current, err
	}
	if crd.Generation != e.key.Generation {
		err = fmt.Errorf("%w: %s has generation %d instead of %d", decision.ErrChanged, e.crd.Name, crd.Generation, e.key.Generation)
	}
	return current, err
}

// stopCleanups ends the cleanups of this run, since the permission is missing for good.
// Otherwise every object would wait for it, because a starting API server answers 403 as well.
func (r *rewriter) stopCleanups(ctx context.Context) error {
	b := decision.Forbidden(kube.UserName(ctx, r.client), cleanupGrant(r.epoch.Load().gvr.GroupResource()))
	refused := fmt.Errorf("clean managedFields: %s; %s", b.Message, b.Fix)
	r.cleanupRefused.Store(&refused)
	return refused
}

// notCleaned is the cause that the report has for an object. It is nil in a run that has only
// managedFields to clean, since the error of that run has the cause once.
func (r *rewriter) notCleaned(refused error) error {
	if r.baseline.Load().Stored {
		return nil
	}
	return refused
}

// cleanupOutcome is the outcome of a cleanup that ended with an error: Deferred if another run
// may succeed, Failed if the server refuses it.
func (r *rewriter) cleanupOutcome(ctx context.Context, err error) godwit.Outcome {
	if _, transient := retry(err); transient || ctx.Err() != nil || errors.Is(err, walk.ErrStopped) {
		return godwit.Deferred
	}
	return godwit.Failed
}
