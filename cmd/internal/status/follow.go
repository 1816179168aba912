package status

import (
	"context"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit/walk"
)

// Pace is shared by the Writers that follow work done side by side, and bounds their writes of progress: all together at most
// one a second, each at most one in [Interval]. The zero value is ready for use.
type Pace struct{ followed atomic.Int64 }

// interval is the least time between two writes of progress of one object.
func (p *Pace) interval() time.Duration {
	return max(Interval, time.Duration(p.followed.Load())*time.Second)
}

// Follow writes progress until stop is called: in the intervals of the pace the change that progress was last called with,
// if it was. Stop returns when the last of these writes has ended.
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
