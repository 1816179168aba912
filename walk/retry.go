package walk

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/godwit-dev/godwit/internal/apierror"
)

const (
	// DefaultAttempts bounds the attempts for one object or page. With the delays below, ten attempts span 28 to 55 s:
	// longer than the restart of an API server, and short enough to report a broken webhook while the user still
	// watches the run.
	DefaultAttempts = 10

	firstDelay = 200 * time.Millisecond
	// maxDelay bounds one wait, even if the server's Retry-After is longer: the server may be back earlier.
	maxDelay = 15 * time.Second
)

// Transient reports whether a retry may succeed without a change by a user, and returns the API server's Retry-After.
// It returns 0 without a Retry-After, and while the API server fills its watch cache: this often takes far less than
// the 1 s in the header. Conflicts are not transient: only the action knows what a conflict means.
func Transient(err error) (time.Duration, bool) { return apierror.Retried(err) }

// backoff returns the wait before the next attempt: exponential with jitter on its upper half, and never shorter than
// the server's hint.
func backoff(attempt int, hint time.Duration) time.Duration {
	d := firstDelay << min(attempt-1, 10)
	d = min(d, maxDelay)
	d = d/2 + rand.N(d/2)
	return min(max(d, hint), maxDelay)
}

// Wait waits for d and returns nil. If the context ends before, it returns the cause.
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

// exhaustedError has the last error of a page whose attempts are used up. It is not transient: otherwise a Retry around
// the list would multiply the attempts.
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
