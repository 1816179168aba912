package status

import (
	"context"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit/walk"
)

// Pace bounds the writes of progress of several Writers: all together at most one per second, and each at most one per
// [Interval]. The zero value is ready for use.
type Pace struct{ followed atomic.Int64 }

// interval is the least time between two writes of progress of one object.
func (p *Pace) interval() time.Duration {
	return max(Interval, time.Duration(p.followed.Load())*time.Second)
}

// Follow writes progress until stop is called. In each interval of the pace, it writes the last change that was passed
// to progress. stop returns when the last write has ended.
func (w *Writer[T]) Follow(ctx context.Context, pace *Pace) (progress func(Change[T]), stop func()) {
	var latest atomic.Pointer[Change[T]]
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	pace.followed.Add(1)
	go func() {
		defer close(done)
		defer pace.followed.Add(-1)
		for wait := Interval; walk.Wait(ctx, wait) == nil; {
			if wait = w.due(pace.interval()); wait > 0 {
				wait = min(wait, Interval) // work beside it may end
				continue
			}
			wait = Interval
			change := latest.Swap(nil)
			if change == nil {
				continue
			}
			if err := w.Write(ctx, *change); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "Cannot write progress")
			}
		}
	}()
	return func(change Change[T]) { latest.Store(&change) }, func() { cancel(); <-done }
}
