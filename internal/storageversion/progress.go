package storageversion

import (
	"sync"
	"sync/atomic"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

// progress reports to the caller of Run how far the pass is, one call at a time.
type progress struct {
	requests atomic.Int64
	listener func(decision.Report)
	mu       sync.Mutex
	now      decision.Report // of the pass under way
}

func newProgress(listener func(decision.Report)) *progress { return &progress{listener: listener} }

// begin starts the report of another pass. It does not call the listener, since nothing has
// happened yet.
func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Storage.Remaining = -1
}

// tried reports how many objects were tried before the first write.
func (p *progress) tried(w walk.Report) {
	p.report(func(now *decision.Report) { now.RoundTrips, now.Storage.Remaining, now.Waiting = w, -1, "" })
}

func (p *progress) report(update func(*decision.Report)) {
	if p.listener == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	update(&p.now)
	p.now.Requests = p.requests.Load()
	p.listener(p.now)
}
