package walk

import (
	"context"
	"sync"
	"time"
)

const (
	// DefaultMaxBytesPerFiveMinutes is a quarter of etcd's default quota of
	// 2 GiB. A revision stays in etcd until it is compacted; every five minutes
	// kube-apiserver compacts what is older than five minutes, so that up to ten
	// minutes of writes are there at once: half of the quota.
	DefaultMaxBytesPerFiveMinutes = 512 << 20

	// largestObject is etcd's --max-request-bytes default: no write adds more.
	largestObject = 3 << 19
)

// budget lets writes wait for room in a byteWindow, first come, first served.
type budget struct {
	next  chan struct{} // taken by the one write that is next to start
	freed chan struct{} // signals that a write under way took less than it reserved

	mu     sync.Mutex
	window byteWindow
	opens  time.Time // when the next write finds room; zero while no write waits
}

// newBudget returns nil where the limits ask for no budget.
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
			// The error of a sample grows with the square root of what is written, so
			// that it is too large a part of a small budget.
			exact: limit < DefaultMaxBytesPerFiveMinutes,
			// The writes that can be under way reserve half of a small budget.
			// If they reserved more, writes would start one by one, and small
			// ones, which need less than they reserve, would wait for nothing.
			perWrite: min(largestObject, limit/int64(2*l.MaxInFlight)),
		},
	}
}

// await returns once room for one write is reserved.
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

// countsFor is asked once the write has room.
func (b *budget) countsFor(sampled bool) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.window.countsFor(sampled)
}

func (b *budget) setOpens(opens time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opens = opens
}

// finish counts what a write took, and wakes the write that waits for room.
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

// delay is 0 as long as a write is under way: its answer may make room at once.
func (b *budget) delay() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opens.IsZero() || b.window.reserved > 0 {
		return 0
	}
	return max(0, time.Until(b.opens))
}
