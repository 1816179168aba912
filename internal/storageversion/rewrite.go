package storageversion

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
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
	baseline atomic.Pointer[baseline]
	tally    sideTally
	// cleanupRefused is set by the first worker that lacks the permission.
	cleanupRefused atomic.Pointer[error]
}

func (m *Migrator) newRewriter() *rewriter {
	r := &rewriter{client: m.client, options: m.options, recent: m.options.Recent}
	r.baseline.Store(&baseline{})
	return r
}

// done reports whether there is evidence that makes a write needless. The memory of
// recent writes is asked last: it keeps what it is asked for.
func (r *rewriter) done(o *metav1.PartialObjectMetadata) (bool, error) {
	p := r.baseline.Load()
	if done, err := p.done(o); done || err != nil || p.since == "" {
		return done, err
	}
	return r.recent.Has(recent.Of(r.epoch.Load().key, o)), nil
}

// rewrite writes one object. What the server threw away of its managedFields
// while it did so is lost, which does not change the outcome.
func (r *rewriter) rewrite(ctx context.Context, o *metav1.PartialObjectMetadata) (outcome godwit.Outcome, lost, err error) {
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
	r.recent.Add(recent.Of(r.epoch.Load().key, after))
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

// errStillThere asks for another attempt.
var errStillThere = errors.New("the write answered 404, but the object is listed")

// confirmGone looks at the collection, because a 404 may also mean that the
// version is no longer served, and then nothing at all was migrated.
func (r *rewriter) confirmGone(ctx context.Context, o *metav1.PartialObjectMetadata) (godwit.Outcome, error) {
	found, err := r.client.Find(ctx, r.epoch.Load().gvr, o)
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

// causesOf names the webhooks and policies that failures come from, each once and
// sorted, as far as the API server's words tell.
func causesOf(failures []godwit.Failure) []string {
	var names []string
	for _, f := range failures {
		if by := apierror.Parse(0, f.Message).Origin; by.Name != "" {
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

// failureReason is the reason of the failure of one object.
func failureReason(err error) string {
	switch answer := apierror.Of(err); answer.Class {
	case apierror.Denied, apierror.NoDryRun:
		return ReasonAdmissionDenied
	case apierror.WebhookUnavailable, apierror.ConversionUnavailable:
		return ReasonWebhookUnavailable
	case apierror.ConversionFailed:
		return ReasonConversionFailed
	case apierror.UnreadableObject:
		return ReasonUnreadableObjects
	case apierror.Forbidden:
		return ReasonForbidden
	case apierror.NotFound:
		return ReasonNotServed
	case apierror.Conflict:
		return ReasonConflict
	case apierror.Throttled:
		return ReasonThrottled
	case apierror.Timeout:
		return ReasonTimeout
	case apierror.ServerError:
		return ReasonServerError
	case apierror.Refused:
		return ReasonObjectInvalid
	case apierror.Unknown:
		return ownReason(err)
	}
	return ReasonFailed
}

// ownReason is the reason of a failure that is no answer of the API server.
func ownReason(err error) string {
	switch {
	case errors.Is(err, errStillThere):
		return ReasonNotServed
	case errors.Is(err, errDropped):
		return ReasonObjectTooLarge
	case errors.Is(err, errKept):
		return ReasonManagedFieldsKept
	case errors.As(err, new(net.Error)), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return ReasonUnanswered
	}
	return ReasonFailed
}
