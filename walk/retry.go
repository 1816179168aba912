package walk

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/godwit-dev/godwit/internal/apierror"
)

const (
	// DefaultAttempts bounds the tries for one object or page. With the delays
	// below, ten tries span 28 to 55 s: longer than an API server's restart,
	// short enough that a broken webhook is reported while the user still
	// watches the run.
	DefaultAttempts = 10

	firstDelay = 200 * time.Millisecond
	// maxDelay caps one wait, also one that a server asks for by Retry-After:
	// a server that is back earlier should not be left idle.
	maxDelay = 15 * time.Second
)

// Transient reports whether a fault may pass without a change, and how long the
// API server asked the client to wait. That is 0 when it did not ask, and while it
// fills its watch cache, which often takes far less than the 1 s that it asks for.
// Conflicts are not transient: only the action knows what a conflict means.
func Transient(err error) (time.Duration, bool) { return apierror.Retried(err) }

// backoff is the wait before the next attempt: exponential with full jitter on
// its upper half, never shorter than the server's hint.
func backoff(attempt int, hint time.Duration) time.Duration {
	d := firstDelay << min(attempt-1, 10)
	d = min(d, maxDelay)
	d = d/2 + rand.N(d/2)
	return min(max(d, hint), maxDelay)
}

// Wait returns nil after d, or the cause when the context ends before.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Retry calls f until it succeeds, fails with an error that is not [Transient], or
// the attempts are used up. It is for single requests: [Run] retries the errors
// that an action returns.
func Retry(ctx context.Context, attempts int, f func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		err := f(ctx)
		hint, again := Transient(err)
		if !again || attempt == attempts || ctx.Err() != nil {
			return err
		}
		if cause := Wait(ctx, backoff(attempt, hint)); cause != nil {
			return fmt.Errorf("%w while waiting to retry after: %w", cause, err)
		}
	}
}

// exhaustedError is the last error of a page whose attempts are used up. It
// is not transient: a Retry around the list would multiply the attempts.
type exhaustedError struct {
	attempts int
	err      error
}

func (e *exhaustedError) Error() string {
	return fmt.Sprintf("list a page, %d attempts: %v", e.attempts, e.err)
}

func (e *exhaustedError) Unwrap() error { return e.err }

// RetriesEnded implements [apierror.RetriesEnded].
func (e *exhaustedError) RetriesEnded() {}
