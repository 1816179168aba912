package walk

import (
	"context"
	"time"
)

const (
	MaxDelay     = maxDelay
	MaxExhausted = maxExhausted
	MaxExpired   = maxExpired
	MaxParked    = maxParked
	MaxRestarts  = maxRestarts

	FirstOutagePause = firstOutagePause
	MaxOutagePause   = maxOutagePause
)

var Backoff = backoff

// Pass is one acquire and one release after a good answer, for the benchmark.
func (l *Limiter) Pass(ctx context.Context) error {
	if err := l.acquire(ctx); err != nil {
		return err
	}
	l.release(answer{sent: time.Now()})
	return nil
}

// WindowEntries is the number of entries in the byte budget's window.
func (l *Limiter) WindowEntries() int { return len(l.bytes.window.entries) }
