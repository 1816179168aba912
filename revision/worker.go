package revision

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/walk"
)

// worker takes a step of several upgrades at once.
type worker struct {
	limiter  *walk.Limiter
	progress func(Result)
}

// each takes a step of each upgrade. An upgrade whose step fails keeps its phase, and reports
// the error. A step that the end of the run stops is no failure.
func (w worker) each(ctx context.Context, upgrades []*upgrade, step func(context.Context, *upgrade) error) error {
	return visit(ctx, w.limiter, upgrades, func(ctx context.Context, u *upgrade) error {
		if u.phaseBefore != "" {
			u.result.Phase = u.phaseBefore
		}
		u.phaseBefore = u.result.Phase
		err := step(ctx, u)
		switch {
		case errors.Is(err, walk.ErrStopped), apierror.IsEndOfRun(err): // the run ends, and the upgrade is not to blame
			return err
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			u.result.Action = decision.Deferred
			u.setStatus(u.result.Phase, decision.ReasonTerminating, "namespace "+u.GetNamespace()+" is being deleted: nothing can be created in it")
			err = nil
		case apierror.IsConflictOrNotFound(err), errors.Is(err, errDeletedMeanwhile):
			u.setStatus(u.result.Phase, decision.ReasonChanged, err.Error())
			err = nil
		case err != nil:
			u.setError(err)
		}
		if err == nil {
			u.phaseBefore = ""
		}
		if w.progress != nil {
			w.progress(u.result)
		}
		return err
	})
}

// prepareAttempts bounds how often an upgrade is prepared within a pass. A revision that two
// upgrades write, as a rollback of a VirtualMachine and of its snapshot do, costs one of them
// an attempt.
const prepareAttempts = 4

// prepare takes the first step of each upgrade. It begins again where another client was
// faster.
func (w worker) prepare(ctx context.Context, upgrades []*upgrade, step func(context.Context, *upgrade) error) error {
	return w.each(ctx, upgrades, func(ctx context.Context, u *upgrade) error {
		for attempt := 1; ; attempt++ {
			u.next, u.result.Phase = stepDone, Analyzing
			err := step(ctx, u)
			changed := apierror.IsConflictOrNotFound(err) || err == nil && u.result.Reason == decision.ReasonChanged
			if !changed || attempt == prepareAttempts {
				return err
			}
		}
	})
}

// visit visits objects, several at once.
func visit[T walk.Object](ctx context.Context, limiter *walk.Limiter, objects []T, act func(context.Context, T) error) error {
	if len(objects) == 0 {
		return nil
	}
	page := func(yield func(walk.Page[T], error) bool) { yield(walk.Page[T]{Items: objects}, nil) }
	_, err := walk.Run(ctx, page, func(ctx context.Context, o T) (godwit.Outcome, error) {
		if err := act(ctx, o); err != nil {
			return godwit.Failed, err
		}
		return godwit.Migrated, nil
	}, walk.Options{Limiter: limiter})
	return err
}
