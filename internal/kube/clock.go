package kube

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ServerClock tells the time as the API server has it. The times that the server or
// another client writes into objects are compared with this clock, since a laptop's or a
// node's clock may be hours off. It learns from the Date header of each response.
type ServerClock struct {
	local  clock.PassiveClock
	mu     sync.Mutex
	known  bool
	offset time.Duration
}

// NewServerClock returns a clock that runs at the pace of a local one, and is the same
// until it has read a date.
func NewServerClock(local clock.PassiveClock) *ServerClock { return &ServerClock{local: local} }

// Now is a lower bound: the Date header it comes from is cut to the second.
func (c *ServerClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.local.Now().Add(c.offset)
}

// Since is the time that passed since t.
func (c *ServerClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Read takes the value of a Date header. One that can't be parsed changes nothing.
func (c *ServerClock) Read(date string) {
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

// RoundTripper reads the date of every response that next returns.
func (c *ServerClock) RoundTripper(next http.RoundTripper) http.RoundTripper {
	return dated{next: next, clock: c}
}

type dated struct {
	next  http.RoundTripper
	clock *ServerClock
}

func (d dated) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := d.next.RoundTrip(req)
	if err == nil {
		d.clock.Read(resp.Header.Get("Date"))
	}
	return resp, err
}
