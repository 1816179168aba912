package walk

import (
	"context"
	"fmt"
	"time"
)

// stopKey is the context key for the context that ends when the walk is stopped.
type stopKey struct{}

// ErrStopped means that a request was not sent, because the walk was stopped while the request waited for its turn.
var ErrStopped error = notSentError("the walk was told to stop")

// untilStop returns the context for waiting. It ends when the walk is stopped: a waiting request need not be sent.
func untilStop(ctx context.Context) (context.Context, func()) {
	stop, ok := ctx.Value(stopKey{}).(context.Context)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	disarm := context.AfterFunc(stop, func() { cancel(fmt.Errorf("%w: %w", ErrStopped, context.Cause(stop))) })
	return ctx, func() { disarm(); cancel(nil) }
}

// sendByKey is the context key for the time after which a request is not sent.
type sendByKey struct{}

// ErrTooLate means that a request was not sent, because its turn did not come by the time that [SendBy] set.
var ErrTooLate error = notSentError("its turn came too late")

// notSentError says why a request was not sent. It ends retries.
type notSentError string

func (e notSentError) Error() string { return "not sent, " + string(e) }

// RetriesEnded implements [apierror.RetriesEnded].
func (e notSentError) RetriesEnded() {}

// SendBy returns a context whose requests are sent before t or not at all. Use it for a write that depends on recent
// reads: with a rate limit, its turn may come long after them. A request that was sent before t may take any time.
func SendBy(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, sendByKey{}, t)
}

// untilTooLate returns the context for waiting. It ends at the time that [SendBy] set.
func untilTooLate(ctx context.Context) (context.Context, func()) {
	t, ok := ctx.Value(sendByKey{}).(time.Time)
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, t, ErrTooLate)
}

// waitsTooLong reports whether the time that [SendBy] set is over.
func waitsTooLong(ctx context.Context) bool {
	t, ok := ctx.Value(sendByKey{}).(time.Time)
	deadline, _ := ctx.Deadline()
	return ok && deadline.Equal(t)
}
