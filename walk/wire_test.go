package walk_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"
)

// wire is a scripted RoundTripper that records when requests start and how many
// are under way. Its answers take no time unless they sleep.
type wire struct {
	answer func(*http.Request) (*http.Response, error)

	mu     sync.Mutex
	began  time.Time
	starts []time.Duration
	paths  []string
	now    int
	peak   int
}

func newWire(answer func(*http.Request) (*http.Response, error)) *wire {
	return &wire{answer: answer, began: time.Now()}
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.starts = append(w.starts, time.Since(w.began))
	w.paths = append(w.paths, req.URL.Path)
	w.now++
	w.peak = max(w.peak, w.now)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.now--
	}()
	return w.answer(req)
}

func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began, w.starts, w.paths, w.peak = time.Now(), nil, nil, 0
}

func reply(code int, retryAfter string) (*http.Response, error) {
	r := &http.Response{StatusCode: code, Header: http.Header{}, Body: http.NoBody}
	if retryAfter != "" {
		r.Header.Set("Retry-After", retryAfter)
	}
	return r, nil
}

// after answers ok in d.
func after(d time.Duration) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		time.Sleep(d)
		return reply(http.StatusOK, "")
	}
}

func refused() error { return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED} }

func send(ctx context.Context, rt http.RoundTripper, method, path string) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://server/"+path, http.NoBody)
	if err != nil {
		panic(err)
	}
	_, err = rt.RoundTrip(req)
	return err
}

// serve starts an HTTP server whose connections are pipes, so that it runs in the
// bubble of synctest and by its clock, and returns the transport that reaches it.
func serve(t *testing.T, handler http.HandlerFunc) *http.Transport {
	t.Helper()
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := &http.Server{Handler: handler}
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(l) })
	tr := &http.Transport{DialContext: l.dial, MaxIdleConnsPerHost: 64}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		_ = srv.Close()
		wg.Wait()
	})
	return tr
}

type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }
