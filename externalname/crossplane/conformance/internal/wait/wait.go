// Package wait waits for what another process does.
package wait

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Pause is the pause between two reads from the API server.
const Pause = 30 * time.Millisecond

// Until calls done until it returns true, and returns the last error after the timeout.
func Until(ctx context.Context, timeout time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last error
	for {
		ok, err := done()
		var final *FinalError
		switch {
		case errors.As(err, &final):
			return final.Err
		case ok && err == nil:
			return nil
		case err != nil && ctx.Err() == nil:
			last = err
		}
		select {
		case <-ctx.Done():
			if last == nil {
				last = fmt.Errorf("it did not happen within %s", timeout)
			}
			return last
		case <-time.After(Pause):
		}
	}
}

// FinalError ends a wait at once.
type FinalError struct{ Err error }

func (e *FinalError) Error() string { return e.Err.Error() }
