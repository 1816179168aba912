package stage

import (
	"context"
	"time"
)

const (
	// longestWait is how long the demo waits for something on a busy machine.
	longestWait = 2 * time.Minute
	pollEvery   = 100 * time.Millisecond
)

// Await calls done until it returns true or an error. what names the event in the error after longestWait.
func Await(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	deadline := time.After(longestWait)
	for {
		ok, err := done(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case ok || err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline:
			return Wrong("waited %v for the %s", longestWait, what)
		case <-time.After(pollEvery):
		}
	}
}
