package crdmigrator

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// serverClock tells the time as the API server has it: the times it writes
// into objects are compared with its own clock, not with ours.
type serverClock struct {
	local  clock.PassiveClock
	mu     sync.Mutex
	known  bool
	offset time.Duration
}

// Now is a lower bound: the Date header it comes from is cut to the second.
func (c *serverClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.local.Now().Add(c.offset)
}

func (c *serverClock) read(date string) {
	t, err := http.ParseTime(date)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	offset := t.Sub(c.local.Now())
	// A cut-off second makes every single reading up to one second too
	// early; the latest of many is the truest. A clock that was set back is
	// believed once it is clearly more than that.
	if !c.known || offset > c.offset || c.offset-offset > 2*time.Second {
		c.known, c.offset = true, offset
	}
}

type requestCountKey struct{}

// requestCount is a counter and the one around it.
type requestCount struct {
	n     *atomic.Int64
	outer *requestCount
}

// CountRequests adds every request that a [Migrator] sends under the returned
// context to n, beside the counters that ctx already has.
func CountRequests(ctx context.Context, n *atomic.Int64) context.Context {
	outer, _ := ctx.Value(requestCountKey{}).(*requestCount)
	return context.WithValue(ctx, requestCountKey{}, &requestCount{n: n, outer: outer})
}

// meter counts requests and reads the server's clock.
type meter struct {
	next  http.RoundTripper
	clock *serverClock
}

func (m meter) RoundTrip(req *http.Request) (*http.Response, error) {
	count, _ := req.Context().Value(requestCountKey{}).(*requestCount)
	for ; count != nil; count = count.outer {
		count.n.Add(1)
	}
	resp, err := m.next.RoundTrip(req)
	if err == nil {
		m.clock.read(resp.Header.Get("Date"))
	}
	return resp, err
}
