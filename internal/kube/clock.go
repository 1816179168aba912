package kube

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ServerClock is the API server's clock, from the Date header of each response. Times in objects are compared with it,
// because the clock of a laptop or a node may be hours off.
type ServerClock struct {
	local  clock.PassiveClock
	mu     sync.Mutex
	known  bool
	offset time.Duration
}

// NewServerClock returns a clock that runs like a local clock, and equals it until it has read a Date header.
func NewServerClock(local clock.PassiveClock) *ServerClock { return &ServerClock{local: local} }

// Now returns a lower bound of the time: the Date header is cut to the second.
func (c *ServerClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.local.Now().Add(c.offset)
}

// Since returns the time since t.
func (c *ServerClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Read adjusts the clock to the value of a Date header. It ignores a value that can't be parsed.
func (c *ServerClock) Read(date string) {
	t, err := http.ParseTime(date)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	offset := t.Sub(c.local.Now())
	// Each reading is up to one second too early because of the cut, so the latest of many is the most exact. Only a
	// larger difference means that the server's clock was set back.
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
