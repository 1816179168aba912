package walk

import (
	"context"
	"sync"
	"time"
)

const (
	// DefaultMaxBytesPerFiveMinutes is a quarter of etcd's default quota of 2 GiB. A revision stays in etcd until it is
	// compacted. Every five minutes, kube-apiserver compacts revisions older than five minutes, so etcd has up to ten
	// minutes of writes at once: half of the quota.
	DefaultMaxBytesPerFiveMinutes = 512 << 20

	// largestObject is etcd's default of --max-request-bytes: no write adds more.
	largestObject = 3 << 19
)

// budget makes writes wait for room in a byteWindow, in their order.
type budget struct {
	next  chan struct{} // taken by the one write that is next to start
	freed chan struct{} // signals that a write under way took less than it reserved

	mu     sync.Mutex
	window byteWindow
	opens  time.Time // when the next write finds room; zero while no write waits
}

// newBudget returns the budget of the limits, or nil if they set none.
func newBudget(l Limits) *budget {
	limit := l.MaxBytesPerFiveMinutes
	switch {
	case limit < 0:
		return nil
	case limit == 0:
		limit = DefaultMaxBytesPerFiveMinutes
	}
	return &budget{
		next:  make(chan struct{}, 1),
		freed: make(chan struct{}, 1),
		window: byteWindow{
			limit: limit,
			// The error of a sample grows with the square root of the written bytes: it is too large for a small
			// budget.
			exact: limit < DefaultMaxBytesPerFiveMinutes,
			// Concurrent writes reserve half of a small budget. If they reserved more, writes would start one by one,
			// and small writes would wait without need.
			perWrite: min(largestObject, limit/int64(2*l.MaxInFlight)),
		},
	}
}

// await waits until room for one write is reserved.
func (b *budget) await(ctx context.Context) error {
	ctx, done := untilStop(ctx)
	defer done()
	select {
	case b.next <- struct{}{}:
		defer func() { <-b.next }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer b.setOpens(time.Time{})
	for {
		wait, ok := b.reserve()
		if ok {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-b.freed:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

func (b *budget) reserve() (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	wait, ok := b.window.reserve(now)
	b.opens = now.Add(wait)
	return wait, ok
}

// sampleWeight returns how many writes the next one counts for. It is called when the write has room.
func (b *budget) sampleWeight(sampled bool) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.window.sampleWeight(sampled)
}

func (b *budget) setOpens(opens time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opens = opens
}

// finish counts the bytes of a write, and wakes the write that waits for room.
func (b *budget) finish(bytes int64) {
	b.mu.Lock()
	b.window.replace(time.Now(), bytes)
	b.mu.Unlock()
	select {
	case b.freed <- struct{}{}:
	default: // the signal is pending already
	}
}

func (b *budget) add(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.window.add(time.Now(), bytes)
}

// delay returns the time until the next write may start. It is 0 while a write is in flight: its answer may make room
// at once.
func (b *budget) delay() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opens.IsZero() || b.window.reserved > 0 {
		return 0
	}
	return max(0, time.Until(b.opens))
}
