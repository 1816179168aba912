package walk

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// DefaultMaxInFlight is the number at which the throughput of a two-core API server stopped growing in our
	// measurements (347/s at 1 in flight, 749/s at 16, 729/s at 24); larger servers gain little more from one client.
	DefaultMaxInFlight = 16

	// startInFlight is the first value in the search for the best number.
	startInFlight = 4

	// One request at a time probes a server that does not answer, after pauses that double from firstOutagePause to
	// maxOutagePause.
	firstOutagePause = 200 * time.Millisecond
	maxOutagePause   = 5 * time.Second
)

// Limiter paces requests. It adapts the number in flight: it adds one per answer until the first sign of strain, then
// one per full set of answers, and halves the number after 429, 5xx and answers far slower than the server's floor.
// After a Retry-After, or if the server does not answer, it starts no request for a while. The 429 of a watch cache
// that is not filled yet does not count as strain.
//
// A Limiter is an [http.RoundTripper] below the HTTP client, so it sees every answer. Callers only report stored bytes,
// with [Limiter.Write]. A Limiter is safe for concurrent use; all walks over one cluster share one.
type Limiter struct {
	outer  *Limiter // paces every request, too; nil: none
	max    int
	bytes  *budget       // nil: none
	writes *rate.Limiter // nil: no cap
	next   chan struct{} // taken by the one writer that is next to start

	mu        sync.Mutex
	allowed   float64 // requests that may be in flight
	threshold float64 // below it allowed grows by one per answer
	inFlight  int
	waiting   []chan struct{} // first come, first served
	lastCut   time.Time
	gate      *time.Timer // set while closed: no request starts
	opens     time.Time
	outage    time.Duration
	floors    map[string]*floor // by API group
}

// NewLimiter returns a limiter within the given bounds.
func NewLimiter(l Limits) *Limiter {
	if l.MaxInFlight <= 0 {
		l.MaxInFlight = DefaultMaxInFlight
	}
	var writes *rate.Limiter
	if l.MaxWritesPerSecond > 0 {
		writes = rate.NewLimiter(rate.Limit(l.MaxWritesPerSecond), 1)
	}
	return &Limiter{
		max:       l.MaxInFlight,
		bytes:     newBudget(l),
		writes:    writes,
		next:      make(chan struct{}, 1),
		allowed:   float64(min(startInFlight, l.MaxInFlight)),
		threshold: float64(l.MaxInFlight),
		floors:    map[string]*floor{},
	}
}

// Narrow returns a limiter for one walk among those of l. A request waits first within the bounds of the narrow
// limiter, then among all requests of l. They share the byte budget. If requests of this walk fail with 500, for
// example because a webhook for its objects does not answer, only this walk slows down.
func (l *Limiter) Narrow(to Limits) *Limiter {
	if to.MaxInFlight <= 0 || to.MaxInFlight > l.max {
		to.MaxInFlight = l.max
	}
	narrow := NewLimiter(to)
	narrow.outer, narrow.bytes = l, l.bytes
	return narrow
}

// MaxInFlight returns the limiter's bound. More workers than this cannot be busy.
func (l *Limiter) MaxInFlight() int { return l.max }

// InFlight returns how many requests are in flight and how many may be.
func (l *Limiter) InFlight() (now, allowed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inFlight, int(l.allowed)
}

// RoundTripper returns a RoundTripper that paces every request to next.
func (l *Limiter) RoundTripper(next http.RoundTripper) http.RoundTripper {
	return l.roundTripper(next, false)
}

func (l *Limiter) roundTripper(next http.RoundTripper, narrowed bool) http.RoundTripper {
	if l.outer != nil {
		next = l.outer.roundTripper(next, true)
	}
	return roundTripper{limiter: l, next: next, narrowed: narrowed}
}

type roundTripper struct {
	limiter  *Limiter
	next     http.RoundTripper
	narrowed bool // a narrow limiter admitted the request, and sees its answer, too
}

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := r.limiter.admission(req); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper must, also when it sends nothing
		}
		return nil, err
	}
	sent := time.Now()
	resp, err := r.next.RoundTrip(req)
	a := answerOf(sent, req, resp, err)
	if r.narrowed && a.broken {
		a.strained = false
	}
	r.limiter.release(a)
	return resp, err
}

// admission waits until the request may start.
func (l *Limiter) admission(req *http.Request) error {
	ctx, done := untilStop(req.Context())
	defer done()
	ctx, cancel := untilTooLate(ctx)
	defer cancel()
	if l.writes == nil || !writes(req) {
		return l.acquire(ctx)
	}
	// Only one writer at a time takes from the rate and then waits for its slot. If many did so while the gate is
	// closed, they would all start when it opens.
	select {
	case l.next <- struct{}{}:
		defer func() { <-l.next }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := l.writes.Wait(ctx); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if waitsTooLong(ctx) {
			return ErrTooLate
		}
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err) // rate does not begin a wait that would be too long
	}
	return l.acquire(ctx)
}

func (l *Limiter) acquire(ctx context.Context) error {
	l.mu.Lock()
	if l.open() && len(l.waiting) == 0 {
		l.inFlight++
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	l.mu.Unlock()

	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		l.leave(turn)
		return context.Cause(ctx)
	}
}

// leave removes a request from the queue, or frees its slot if it got one meanwhile.
func (l *Limiter) leave(turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.waiting {
		if w == turn {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return
		}
	}
	l.inFlight--
	l.admit()
}

func (l *Limiter) open() bool { return l.gate == nil && l.inFlight < int(l.allowed) }

// admit starts the requests that have waited longest, as long as the bound allows.
func (l *Limiter) admit() {
	for len(l.waiting) > 0 && l.open() {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		l.inFlight++
	}
}

func (l *Limiter) release(a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.alone = l.inFlight == 1
	busy := l.inFlight >= int(l.allowed) // an allowance that is not used is not tested
	l.inFlight--
	if a.retryAfter > 0 {
		l.close(a.retryAfter)
	}
	switch {
	case a.aborted:
	case !a.sent.After(l.lastCut):
		// The request was sent before the last cut, so its answer reflects the load before the cut. One lost connection
		// is one outage, even if it ends many requests, and many 429s for the same load are one cut.
	case a.missing:
		l.lastCut = time.Now()
		l.allowed = 1
		l.threshold = max(2, l.threshold/2)
		l.outage = min(max(2*l.outage, firstOutagePause), maxOutagePause)
		l.close(l.outage)
	case a.strained || l.slow(a):
		l.lastCut = time.Now()
		l.allowed = max(1, l.allowed/2)
		l.threshold = l.allowed
	default:
		l.outage = 0
		if busy {
			l.grow()
		}
	}
	l.admit()
}

func (l *Limiter) grow() {
	step := 1.0
	if l.allowed >= l.threshold {
		step = 1 / l.allowed
	}
	l.allowed = min(l.allowed+step, float64(l.max))
}

// close closes the gate for d from now. If the gate would already open later, it does not change.
func (l *Limiter) close(d time.Duration) {
	opens := time.Now().Add(d)
	if l.gate != nil {
		if l.opens.After(opens) {
			return
		}
		l.gate.Stop()
	}
	l.opens = opens
	l.gate = time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if time.Now().Before(l.opens) {
			return // fired while an answer closed the gate for longer
		}
		l.gate = nil
		l.admit()
	})
}

// floorWindow is how many answers one floor covers, so that a permanently slower server is not treated as strained
// forever. The answer to a request that was alone in flight begins a new floor, because our load did not slow it down.
const floorWindow = 1000

// floor is the least latency in a window of answers. Each API group has its own floor: a webhook slows down every write
// to one group, but not the access reviews and CRDs in between.
type floor struct {
	least   time.Duration
	samples int
}

func (l *Limiter) slow(a answer) bool {
	if a.took <= 0 {
		return false
	}
	f := l.floors[a.group]
	if f == nil || f.samples == floorWindow || a.alone {
		f = &floor{least: a.took}
		l.floors[a.group] = f
	}
	f.samples++
	f.least = min(f.least, a.took)
	return a.took > slowAtLeast && a.took > slowFactor*f.least
}
