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

// Expenses is the length of the byte budget's ledger.
func (l *Limiter) Expenses() int { return len(l.bytes.ledger.expenses) }
