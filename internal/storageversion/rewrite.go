package storageversion

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/internal/storageversion/managedfields"
	"github.com/godwit-dev/godwit/internal/storageversion/recent"
	"github.com/godwit-dev/godwit/walk"
)

// rewriter is what the workers of a run share. The epoch and the baseline never change,
// but the goroutine that feeds pages replaces them; the tally locks itself.
type rewriter struct {
	client   *request.Client
	options  Options
	recent   *recent.Writes
	epoch    atomic.Pointer[epoch]
	baseline atomic.Pointer[evidence.Baseline]
	tally    sideTally
	// cleanupRefused is set by the first worker that lacks the permission.
	cleanupRefused atomic.Pointer[error]
}

func (m *Migrator) newRewriter() *rewriter {
	r := &rewriter{client: m.client, options: m.options, recent: m.options.Recent, tally: sideTally{maxFailures: m.options.MaxFailures}}
	r.baseline.Store(&evidence.Baseline{})
	return r
}

// done reports whether there is evidence that makes a write needless. It asks the memory of
// recent writes last, because that memory keeps a write longer each time it is asked for it.
func (r *rewriter) done(o *metav1.PartialObjectMetadata) (bool, error) {
	if e := r.epoch.Load(); e.crd != nil && decision.OfOtherScope(e.crd, o.Namespace) {
		return false, decision.ErrOtherScope
	}
	p := r.baseline.Load()
	if done, err := p.Done(o); done || err != nil || p.Since == "" {
		return done, err
	}
	return r.recent.Has(recent.Of(r.epoch.Load().key, o)), nil
}

// rewrite writes one object. lost is an error if the server dropped the managedFields of the
// object with this write; the outcome does not depend on it.
func (r *rewriter) rewrite(ctx context.Context, o *metav1.PartialObjectMetadata) (outcome godwit.Outcome, lost, err error) {
	w := r.writeOf(o)
	after, err := r.write(ctx, o, w)
	switch {
	case apierrors.IsNotFound(err):
		outcome, err = r.confirmGone(ctx, o)
		return outcome, nil, err
	case apierrors.IsConflict(err):
		outcome, err = r.conflict(ctx, o, w, err)
		return outcome, nil, err
	case apierror.Of(err).Class == apierror.TooLarge:
		return godwit.Failed, nil, r.withSize(ctx, o, err)
	case err != nil:
		return godwit.Failed, nil, apierror.RetryForbidden(err)
	case r.options.DryRun:
		return godwit.Skipped, nil, nil
	case request.Ended(after):
		return godwit.Gone, nil, nil
	}
	r.recent.Add(recent.Of(r.epoch.Load().key, after))
	if after.ResourceVersion == o.ResourceVersion {
		return godwit.Unchanged, nil, nil
	}
	lost = managedfields.Dropped(o, after)
	o.ResourceVersion, o.ManagedFields = after.ResourceVersion, after.ManagedFields // for another visit
	return godwit.Migrated, lost, nil
}

// withSize adds to the refusal of an object that is too large how large the object is.
func (r *rewriter) withSize(ctx context.Context, o *metav1.PartialObjectMetadata, refusal error) error {
	whole, err := r.client.FindWhole(ctx, r.epoch.Load().gvr, o)
	if err != nil || whole == nil {
		return refusal
	}
	text, err := whole.MarshalJSON()
	if err != nil {
		return refusal
	}
	return fmt.Errorf("the object has %d bytes as JSON: %w", len(text), refusal)
}

// confirmGone lists the collection for the object, because a 404 may also mean that
// the version is no longer served. The object would then exist, and not be migrated.
func (r *rewriter) confirmGone(ctx context.Context, o *metav1.PartialObjectMetadata) (godwit.Outcome, error) {
	found, err := r.client.Find(ctx, r.epoch.Load().gvr, o)
	switch {
	case err != nil:
		return godwit.Failed, fmt.Errorf("confirm that %s is gone: %w", walk.Key(o), apierror.RetryForbidden(err))
	case found != nil:
		return godwit.Failed, errStillListed
	}
	return godwit.Gone, nil
}

// writeOf returns the write of an object: that of the policy, or an apply in place of a patch
// if a conversion webhook must convert managedFields. While the webhook is down, an apply fails,
// whereas a patch costs the object all its managedFields before Kubernetes 1.37.
func (r *rewriter) writeOf(o *metav1.PartialObjectMetadata) decision.Write {
	w := r.options.Write.OrDefault()
	if r.epoch.Load().cleaner.Converted(o.ManagedFields) {
		return w.OrApply()
	}
	return w
}

// write sends a write and returns the object after it.
func (r *rewriter) write(ctx context.Context, o *metav1.PartialObjectMetadata, w decision.Write) (*metav1.PartialObjectMetadata, error) {
	e := r.epoch.Load()
	if w == decision.WriteUpdate {
		return r.update(ctx, o)
	}
	p, err := patchOf(w, e.gvr.GroupVersion().WithKind(e.kind), o)
	if err != nil {
		return nil, err
	}
	p.DryRun = r.options.DryRun
	after, err := r.client.PatchObject(ctx, e.gvr, o, p)
	if policy := r.options.Write.OrDefault(); w != policy && apierror.IsUntyped(err) {
		return r.write(ctx, o, policy)
	}
	return after, err
}

// update replaces an object by itself. If a conversion webhook must convert managedFields, it sends
// a dry run first: before Kubernetes 1.37, the server drops the managedFields that it can't convert.
func (r *rewriter) update(ctx context.Context, o *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	e := r.epoch.Load()
	if !e.cleaner.Converted(o.ManagedFields) {
		return r.client.UpdateObject(ctx, e.gvr, o, r.options.DryRun)
	}
	tried, err := r.client.UpdateObject(ctx, e.gvr, o, true)
	switch {
	case err != nil && (r.options.DryRun || apierror.Of(err).Class != apierror.NoDryRun):
		return nil, err
	case err == nil && managedfields.Dropped(o, tried) != nil:
		return nil, apierrors.NewServiceUnavailable(managedfields.ErrUnconverted.Error())
	case r.options.DryRun:
		return tried, nil
	}
	return r.client.UpdateObject(ctx, e.gvr, o, false)
}

// conflict decides what a 409 means: another client wrote the object since it was listed. If the resourceVersion of the live object
// proves that this was a write at the storage version, the object needs no other write. The listed resourceVersion proves nothing,
// because it is of before the conflict. After an update, this pass leaves the object alone, as users of an update expect.
func (r *rewriter) conflict(ctx context.Context, o *metav1.PartialObjectMetadata, w decision.Write, err error) (godwit.Outcome, error) {
	if w == decision.WriteUpdate && !errors.Is(err, request.ErrWritten) {
		return godwit.Deferred, err
	}
	live, findErr := r.client.Find(ctx, r.epoch.Load().gvr, o)
	switch {
	case findErr != nil:
		return godwit.Failed, fmt.Errorf("read %s after a conflict: %w", walk.Key(o), apierror.RetryForbidden(findErr))
	case live == nil:
		return godwit.Gone, nil
	}
	if fresh, err := r.baseline.Load().Fresh(live.ResourceVersion); err != nil || fresh {
		return godwit.Skipped, err
	}
	if policy := r.options.Write.OrDefault(); w != policy || policy == decision.WritePatch || policy == decision.WriteStatusPatch {
		o.ResourceVersion, o.ManagedFields = live.ResourceVersion, live.ManagedFields
		return godwit.Failed, err // retried
	}
	return godwit.Deferred, err
}
