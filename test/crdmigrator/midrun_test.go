package crdmigrator_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// halt is a point at which a run waits until the test releases it.
type halt struct {
	reached  chan struct{}
	released chan struct{}
	release  func()
}

func newHalt(t *testing.T) *halt {
	h := &halt{reached: make(chan struct{}), released: make(chan struct{})}
	h.release = sync.OnceFunc(func() { close(h.released) })
	t.Cleanup(h.release)
	return h
}

func (h *halt) stand() {
	close(h.reached)
	<-h.released
}

func (h *halt) isReached() bool {
	select {
	case <-h.reached:
		return true
	default:
		return false
	}
}

// run is a migration in the background.
type run struct {
	*halt
	done   chan struct{}
	report decision.Report
	err    error
}

// resume releases a paused run, and returns its result.
func (r *run) resume() (decision.Report, error) {
	r.release()
	<-r.done
	return r.report, r.err
}

// pauseAfter runs until n objects are done. While the run is paused, it counts no
// object and begins no page; requests that its workers have sent continue.
func (w *widgets) pauseAfter(ctx context.Context, m *storageversion.Migrator, n int64) *run {
	w.t.Helper()
	h, stood := newHalt(w.t), false
	return w.pauseAt(ctx, m, h, func(r decision.Report) {
		if !stood && r.Storage.Counts.Total() >= n {
			stood = true
			h.stand()
		}
	})
}

// pauseAt runs until the run waits at a halt of the test.
func (w *widgets) pauseAt(ctx context.Context, m *storageversion.Migrator, h *halt, progress func(decision.Report)) *run {
	w.t.Helper()
	r := &run{halt: h, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.report, r.err = w.migrate(ctx, m, progress)
	}()
	select {
	case <-h.reached:
	case <-r.done:
		w.t.Fatalf("the run ended before it was to be paused: %+v, %v", r.report, r.err)
	}
	return r
}

// wire is what lies between a client and its API server.
type wire struct {
	mu        sync.Mutex
	exchanges []exchange
	before    func(*http.Request) bool
	halt      *halt
	after     func(*http.Request, *http.Response) (*http.Response, error)
}

// exchange is a request and its answer; the code is 0 where there was none.
type exchange struct {
	method, path string
	code         int
}

// tap returns the configuration with a wire that records requests.
func tap(config *rest.Config) (*rest.Config, *wire) {
	w := &wire{}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) { return w.exchange(next, req) })
	})
	return config, w
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// haltBefore stops the first request that matches, before it is sent.
func (w *wire) haltBefore(t *testing.T, match func(*http.Request) bool) *halt {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before, w.halt = match, newHalt(t)
	return w.halt
}

func (w *wire) exchange(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	stand := w.before != nil && w.before(req)
	if stand {
		w.before = nil
	}
	w.mu.Unlock()
	if stand {
		w.halt.stand()
	}
	resp, err := next.RoundTrip(req)
	if err == nil && w.after != nil {
		resp, err = w.after(req, resp)
	}
	e := exchange{method: req.Method, path: req.URL.Path}
	if err == nil {
		e.code = resp.StatusCode
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.exchanges = append(w.exchanges, e)
	return resp, err
}

func (w *wire) count(match func(exchange) bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, e := range w.exchanges {
		if match(e) {
			n++
		}
	}
	return n
}

func (w *wire) answered(code int) int {
	return w.count(func(e exchange) bool { return e.code == code })
}

// writesTo counts the writes to objects of a group.
func (w *wire) writesTo(group string) int {
	return w.count(func(e exchange) bool {
		return e.method != http.MethodGet && strings.HasPrefix(e.path, "/apis/"+group+"/")
	})
}
