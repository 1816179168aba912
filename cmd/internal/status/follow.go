package status

import (
	"context"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit/walk"
)

// Follow writes progress until stop is called: every Interval the change that progress was last called with, if it was.
// Stop returns when the last of these writes has ended.
func (w *Writer[T]) Follow(ctx context.Context) (progress func(Change[T]), stop func()) {
	var latest atomic.Pointer[Change[T]]
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait := Interval; walk.Wait(ctx, wait) == nil; {
			if wait = w.Due(); wait > 0 {
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
