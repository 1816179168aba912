package preflight

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/walk"
)

// renewal is a time that a running process writes repeatedly.
type renewal struct {
	// read returns the last time, or zero if the process has written none.
	read func(context.Context) (time.Time, error)
	// clock is that of the API server, or of another machine with the right time.
	clock clock.PassiveClock
	// wait is the longest interval between two writes.
	wait time.Duration
}

// awaitRenewal reports whether a process runs: its time is recent, or changes while the preflight waits. A wrong clock
// only costs time; it can change the result only within maxSkew.
func (h Hubs) awaitRenewal(ctx context.Context, of renewal) (last time.Time, runs bool, err error) {
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
