package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// attemptLimit bounds each request, from the moment at which it is sent. It is above the
	// 10 s that the API server gives a webhook by default, so that the API server names the
	// webhook that did not answer.
	attemptLimit = 12 * time.Second

	// attemptsAtOnce is few enough for a webhook that runs once.
	attemptsAtOnce = 4

	// attemptReads bounds the readings of an object that is written all the time.
	attemptReads = 3

	// keptPaths bounds what is remembered of one changed object.
	keptPaths = 10
)

var errAttemptOver = fmt.Errorf("no answer within %v", attemptLimit)

// tryAll tries a write on objects, a few at once. A webhook that is down is the same for all
// of them, and takes its time with each: the first attempt to meet it is the last. What was
// not begun in time is not among the attempts.
func tryAll(ctx context.Context, t storageversion.PreflightTarget, w decision.Write, objects []*metav1.PartialObjectMetadata) []attempt {
	attempts := make([]*attempt, len(objects))
	next := make(chan int, len(objects))
	for i := range objects {
		next <- i
	}
	close(next)
	var stop atomic.Bool
	var workers sync.WaitGroup
	for range min(len(objects), attemptsAtOnce) {
		workers.Go(func() {
			for i := range next {
				if stop.Load() || ctx.Err() != nil {
					return
				}
				a := try(ctx, t, w, objects[i])
				attempts[i] = &a
				if a.outcome().effect == unreachable {
					stop.Store(true)
				}
			}
		})
	}
	workers.Wait()
	var tried []attempt
	for _, a := range attempts {
		if a != nil {
			tried = append(tried, *a)
		}
	}
	return tried
}

// try compares an object with what the API server would make of it. The dry run answers with
// the resourceVersion that it found: if that is not the one which was read, another client
// made the difference.
func try(ctx context.Context, t storageversion.PreflightTarget, w decision.Write, o walk.Object) attempt {
	ctx, cancel := kube.WithAnswerLimit(ctx, attemptLimit, errAttemptOver)
	defer cancel()
	a := attempt{namespace: o.GetNamespace(), name: o.GetName()}
	for range attemptReads {
		before, err := t.Client.FindWhole(ctx, kube.ResourceOf(t.Facts.CRD), o)
		switch {
		case err != nil:
			return a.failed(ctx, err)
		case before == nil:
			a.inconclusive = "the object is gone"
			return a
		}
		after, err := t.DryRun(ctx, w, before)
		switch {
		case apierrors.IsConflict(err):
			continue
		case err != nil:
			return a.failed(ctx, err)
		case after.GetResourceVersion() == before.GetResourceVersion():
			fillDefaults(t.Facts.CRD, before.Object)
			a.changed = changedPaths(before.Object, after.Object)
			a.more = max(0, len(a.changed)-keptPaths)
			a.changed = a.changed[:len(a.changed)-a.more]
			return a
		}
	}
	a.inconclusive = "another client wrote the object each time"
	return a
}

// failed notes what the API server said, or that it said nothing.
func (a attempt) failed(ctx context.Context, err error) attempt {
	var answered apierrors.APIStatus
	switch {
	case errors.As(err, &answered):
		a.code, a.refusal = answered.Status().Code, cmp.Or(err.Error(), "no reason given")
	case ctx.Err() != nil:
		a.inconclusive = context.Cause(ctx).Error()
	default:
		a.inconclusive = err.Error()
	}
	return a
}
