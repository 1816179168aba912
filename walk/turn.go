package walk

import (
	"context"
	"fmt"
	"time"
)

// stopKey marks the context of an action with the one that ends when its walk is
// told to stop.
type stopKey struct{}

// ErrStopped is the error of a request that was not sent, because its walk was
// told to stop while the request waited for its turn.
var ErrStopped error = notSentError("the walk was told to stop")

// untilStop returns the context for waiting. It ends when the walk is told to
// stop: a request that waits is not under way, and need not be sent.
func untilStop(ctx context.Context) (context.Context, func()) {
	stop, ok := ctx.Value(stopKey{}).(context.Context)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	disarm := context.AfterFunc(stop, func() { cancel(fmt.Errorf("%w: %w", ErrStopped, context.Cause(stop))) })
	return ctx, func() { disarm(); cancel(nil) }
}

// sendByKey marks the context of a request with the time after which it is not sent.
type sendByKey struct{}

// ErrTooLate is the error of a request that was not sent, because its turn did not come
// by the time that [SendBy] set.
var ErrTooLate error = notSentError("its turn came too late")

// notSentError says why a request was not sent, and is not to be sent by a retry.
type notSentError string

func (e notSentError) Error() string { return "not sent, " + string(e) }

// RetriesEnded implements [apierror.RetriesEnded].
func (e notSentError) RetriesEnded() {}

// SendBy returns a context whose requests are sent by t or not at all. It is for a write
// that depends on recent reads: behind a rate limit its turn may come long after them. A
// request that was sent by t may take any time to be answered.
func SendBy(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, sendByKey{}, t)
}

// untilTooLate ends the wait for a turn at the time that [SendBy] set.
func untilTooLate(ctx context.Context) (context.Context, func()) {
	t, ok := ctx.Value(sendByKey{}).(time.Time)
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, t, ErrTooLate)
}

// waitsTooLong reports whether the wait for a turn would outlast the time that [SendBy] set.
func waitsTooLong(ctx context.Context) bool {
	t, ok := ctx.Value(sendByKey{}).(time.Time)
	deadline, _ := ctx.Deadline()
	return ok && deadline.Equal(t)
}
