package walk

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
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

// Write makes one write of an object within the byte budget. It waits for room,
// calls send, and books the bytes that send says were added to etcd: the size of
// the object, 0 where the server found nothing to change. After an error that
// leaves open whether the object was written, the largest object there can be is
// booked.
//
// Only writes that are stored belong here: no reviews and no dry runs. Without a
// budget, Write is send.
func (l *Limiter) Write(ctx context.Context, send func(context.Context) (written int64, err error)) error {
	if l.bytes == nil {
		_, err := send(ctx)
		return err
	}
	if err := l.bytes.await(ctx); err != nil {
		return err
	}
	written, err := send(ctx)
	switch {
	case err == nil:
	case mayHaveWritten(err):
		written = l.bytes.ledger.hold
	default:
		written = 0
	}
	l.bytes.settle(written)
	return err
}

// Book counts bytes that were added to etcd by a write which can't wait for
// room, such as the last one of a walk that is to stop. Objects written later
// wait for it.
func (l *Limiter) Book(written int64) {
	if l.bytes != nil {
		l.bytes.book(written)
	}
}

// CountsBytes tells whether there is a byte budget: without one, nobody needs to
// know how large an object is.
func (l *Limiter) CountsBytes() bool { return l.bytes != nil }

// WaitsForBytes is the time until the next write may start while the byte budget
// is all that holds it up, and 0 otherwise.
func (l *Limiter) WaitsForBytes() time.Duration {
	if l.bytes == nil {
		return 0
	}
	return l.bytes.waits()
}

// mayHaveWritten: a server that gave up on its own request, or was not heard of
// again, may still have carried it out.
func mayHaveWritten(err error) bool {
	if errors.Is(err, ErrStopped) || errors.Is(err, ErrTooLate) || utilnet.IsConnectionRefused(err) {
		return false // it was not sent
	}
	if _, answered := apiStatus(err); answered {
		return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
	}
	return true
}

// budget lets writes wait for room in a ledger, first come, first served.
type budget struct {
	next  chan struct{} // held by the one write that is next to start
	freed chan struct{} // tells it that a write under way took less than it held

	mu     sync.Mutex
	ledger ledger
	opens  time.Time // when the next one finds room; zero while nobody waits
}

// newBudget returns nil where there is to be none.
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
		ledger: ledger{
			limit: limit,
			// Of a small budget as many writes as can be under way hold half:
			// with more of it they would go one by one, and small ones that
			// never need as much would wait for nothing.
			hold: min(largestObject, limit/int64(2*l.MaxInFlight)),
		},
	}
}

// await returns once the caller holds room for one write.
func (b *budget) await(ctx context.Context) error {
	ctx, done := untilStop(ctx)
	defer done()
	select {
	case b.next <- struct{}{}:
		defer func() { <-b.next }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer b.noted(time.Time{})
	for {
		wait, ok := b.take()
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

func (b *budget) take() (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	wait, ok := b.ledger.take(now)
	b.opens = now.Add(wait)
	return wait, ok
}

func (b *budget) noted(opens time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opens = opens
}

func (b *budget) settle(bytes int64) {
	b.mu.Lock()
	b.ledger.settle(time.Now(), bytes)
	b.mu.Unlock()
	select {
	case b.freed <- struct{}{}:
	default: // it was told already
	}
}

func (b *budget) book(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.book(time.Now(), bytes)
}

// waits is 0 as long as a write is under way: its answer may make room at once.
func (b *budget) waits() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opens.IsZero() || b.ledger.held > 0 {
		return 0
	}
	return max(0, time.Until(b.opens))
}
