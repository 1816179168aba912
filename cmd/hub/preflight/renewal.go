package preflight

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/walk"
)

// renewal is a time that a process writes again and again while it runs.
type renewal struct {
	// read returns the last time, or zero if there is none.
	read func(context.Context) (time.Time, error)
	// clock of the API server, or of another machine that has the time.
	clock clock.PassiveClock
	// wait is how long the process may take to write it again.
	wait time.Duration
}

// await reports whether a process runs: its time is not old, or it changes while the preflight waits. A
// clock that is wrong costs time and changes no result but within maxSkew.
func (h Hubs) await(ctx context.Context, of renewal) (last time.Time, runs bool, err error) {
	var first time.Time
	for deadline := h.Clock.Now().Add(of.wait); ; {
		if last, err = of.read(ctx); err != nil || last.IsZero() {
			return last, false, err
		}
		if of.clock.Since(last).Abs() < maxSkew || !first.IsZero() && last.After(first) {
			return last, true, nil
		}
		if first.IsZero() {
			first = last
		}
		if h.Clock.Now().After(deadline) {
			return last, false, nil
		}
		if err := walk.Wait(ctx, h.poll()); err != nil {
			return last, false, err
		}
	}
}
