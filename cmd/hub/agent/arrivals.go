package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/godwit-dev/godwit/cmd/hub/message"
)

const (
	// maxIncomplete bounds the memory for clusters of which a part has arrived.
	maxIncomplete = 64 << 20
	// maxHeld bounds the memory for bundles whose command has not arrived.
	maxHeld = 32 << 20
)

// arrivals reassembles the bundles of one execution.
type arrivals struct {
	mutex       sync.Mutex
	reassembler *message.Reassembler
	// last is when the last bundle arrived, or was requested.
	last time.Time

	// deliveries pass complete clusters to the execution. The receiver waits until they were
	// applied, so that memory is bounded, and an offset is committed afterwards.
	deliveries chan delivery
	// ended is closed with the execution.
	ended chan struct{}
}

type delivery struct {
	clusters []message.Resources
	applied  chan struct{}
}

func newArrivals(clusters []string, now time.Time) *arrivals {
	return &arrivals{
		reassembler: message.NewReassembler(clusters, maxIncomplete), last: now,
		deliveries: make(chan delivery), ended: make(chan struct{}),
	}
}

// add adds a bundle. It returns when the execution has applied the clusters that the bundle completes. An error other
// than the context's says which part of the bundle was refused.
func (a *arrivals) add(ctx context.Context, b message.ResourceBundle, now time.Time) error {
	a.mutex.Lock()
	a.last = now
	complete, err := a.reassembler.Add(b)
	a.mutex.Unlock()
	if len(complete) == 0 {
		return err
	}
	d := delivery{complete, make(chan struct{})}
	select {
	case a.deliveries <- d:
	case <-a.ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-d.applied:
	case <-a.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	return err
}

// missing returns what has not arrived, if nothing has arrived for a while.
func (a *arrivals) missing(now time.Time, quiet time.Duration) []message.Gap {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if now.Sub(a.last) < quiet {
		return nil
	}
	a.last = now
	return a.reassembler.Missing()
}

// held keeps bundles whose command has not arrived: two topics have no order between them. The agent can't check their
// sender yet, so it drops the oldest bundles when memory is short. The agent reports dropped bundles as missing later,
// and the source sends them again.
type held struct {
	bundles []heldBundle
	bytes   int
}

type heldBundle struct {
	migration string
	envelope  message.Envelope
	until     time.Time
}

func (h *held) add(b heldBundle, now time.Time) {
	h.remove(func(old heldBundle) bool { return now.After(old.until) })
	h.bundles = append(h.bundles, b)
	h.bytes += b.envelope.Size()
	for h.bytes > maxHeld {
		h.bytes -= h.bundles[0].envelope.Size()
		h.bundles = slices.Delete(h.bundles, 0, 1)
	}
}

// take removes and returns the bundles of a migration.
func (h *held) take(migration string) []message.Envelope {
	var taken []message.Envelope
	h.remove(func(b heldBundle) bool {
		if b.migration != migration {
			return false
		}
		taken = append(taken, b.envelope)
		return true
	})
	return taken
}

func (h *held) remove(which func(heldBundle) bool) {
	h.bundles = slices.DeleteFunc(h.bundles, which)
	h.bytes = 0
	for _, b := range h.bundles {
		h.bytes += b.envelope.Size()
	}
}
