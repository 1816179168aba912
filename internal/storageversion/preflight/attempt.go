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

	// attemptsAtOnce is few enough for a webhook with one replica.
	attemptsAtOnce = 4

	// attemptReads bounds the readings of an object that is written all the time.
	attemptReads = 3

	// keptPaths bounds what is remembered of one changed object.
	keptPaths = 10
)

var errAttemptOver = fmt.Errorf("no answer within %v", attemptLimit)

// tryAll tries a write on objects, a few at once. It stops after the first attempt that meets
// a webhook which does not answer, since each other attempt would wait for the same webhook.
// Objects whose attempt was not begun in time are not in the result.
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

// try compares an object with the answer of a dry run. The answer has the resourceVersion of
// the object in etcd. If it is not the one that was read, another client changed the object,
// and try reads it again.
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
		after, err := t.DryRun(ctx, kube.StorageVersion(t.Facts.CRD), w, before)
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

// failed adds the API server's refusal to an attempt, or why there was no answer.
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
