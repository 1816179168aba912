package crdmigrator

import (
	"context"
	"io"
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

// deadline bounds one exchange. Unlike the timeout of an http.Client it begins
// when the request is sent, not while it waits for its turn.
type deadline struct {
	next  http.RoundTripper
	limit time.Duration
}

func (d deadline) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), d.limit)
	resp, err := d.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = bodyWithin{resp.Body, cancel}
	return resp, nil
}

// bodyWithin ends the deadline's context once the answer is read.
type bodyWithin struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b bodyWithin) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
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
