// Package quicklist retries lists for a user who waits for the answer: a few attempts with a time limit, and no attempt
// after a timeout. A walk over all objects retries longer.
package quicklist

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// Attempts bounds the attempts. With the pauses between them they span 1.5 s, or more if the API server sets
	// Retry-After.
	Attempts = 4

	// Limit bounds one attempt, from when its request is sent. The API server needs milliseconds for one object, and 30
	// s until a conversion webhook times out.
	Limit = 10 * time.Second

	// grace lets the API server report its own timeout first.
	grace = 2 * time.Second

	firstPause = 200 * time.Millisecond
	maxPause   = 5 * time.Second
)

// ErrOver means that the API server did not answer an attempt in time.
var ErrOver = fmt.Errorf("no answer within %v", Limit+grace)

// Retry makes a few attempts at a list, each within the limit. It does not retry after a
// timeout.
func Retry(ctx context.Context, list func(context.Context) error) error {
	pause := firstPause
	for try := 1; ; try++ {
		err := Attempt(ctx, list)
		hint, transient := Transient(err)
		if err == nil || !transient || try == Attempts {
			return err
		}
		if cause := walk.Wait(ctx, min(max(pause, hint), maxPause)); cause != nil {
			return cause
		}
		pause *= 2
	}
}

// Attempt makes one attempt within the limit. It returns [ErrOver] if the API server did not
// answer in time. The time for which a request waits in the limiter does not count.
func Attempt(ctx context.Context, list func(context.Context) error) error {
	limited, cancel := kube.WithAnswerLimit(ctx, Limit+grace, ErrOver)
	defer cancel()
	err := list(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return context.Cause(limited)
	}
	return err
}

// Transient is like apierror.Transient, but false for an attempt that timed out.
func Transient(err error) (time.Duration, bool) {
	if TimedOut(err) {
		return 0, false
	}
	return apierror.Transient(err)
}

// TimedOut reports whether the API server, or a proxy before it, timed out, or did not answer
// within the limit.
func TimedOut(err error) bool {
	return errors.Is(err, ErrOver) || apierror.Of(err).Class == apierror.Timeout
}
