// Package fault stands between a program and a real API server. It numbers the
// program's writes, lets a test act before and look after each of them, and has one
// go wrong as writes do: the process dies, the answer is lost, somebody was faster.
package fault

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Fault is what befalls one write.
type Fault func(next http.RoundTripper, req *http.Request, kill func()) (*http.Response, error)

var errKilled = errors.New("the process was killed")

// All are the faults that any write may meet, by name.
func All() map[string]Fault {
	return map[string]Fault{
		"killed before the write": func(_ http.RoundTripper, _ *http.Request, kill func()) (*http.Response, error) {
			kill()
			return nil, errKilled
		},
		"killed after the write": func(next http.RoundTripper, req *http.Request, kill func()) (*http.Response, error) {
			send(next, req)
			kill()
			return nil, errKilled
		},
		"answered by a conflict": func(http.RoundTripper, *http.Request, func()) (*http.Response, error) {
			return answer(http.StatusConflict, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`), nil
		},
		"asked for patience": func(http.RoundTripper, *http.Request, func()) (*http.Response, error) {
			return answer(http.StatusTooManyRequests, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`), nil
		},
		"answered by 500, though it was written": func(next http.RoundTripper, req *http.Request, _ func()) (*http.Response, error) {
			send(next, req)
			return answer(http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`), nil
		},
	}
}

// Occupied has somebody else create the object a moment before, so that the server
// answers AlreadyExists. Change makes another content of the body; nil leaves it.
// Other writes than creations go well.
func Occupied(change func([]byte) []byte) Fault {
	return func(next http.RoundTripper, req *http.Request, _ func()) (*http.Response, error) {
		if req.Method != http.MethodPost {
			return next.RoundTrip(req)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		first := body
		if change != nil {
			first = change(body)
		}
		send(next, withBody(req, first))
		return next.RoundTrip(withBody(req, body))
	}
}

func withBody(req *http.Request, body []byte) *http.Request {
	req = req.Clone(req.Context())
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return req
}

func send(next http.RoundTripper, req *http.Request) {
	if resp, err := next.RoundTrip(req); err == nil {
		_ = resp.Body.Close()
	}
}

func answer(code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// Transport is one process's way to the server.
type Transport struct {
	// Fault befalls the write of number At, counted from 0; nil: none does.
	Fault Fault
	At    int
	// Before, if given, is called with the number of each write before it is sent.
	Before func(int)
	// After, if given, is called with each write that was sent, however it went.
	After func(*http.Request)

	mu     sync.Mutex
	writes []string
	dead   bool
	kill   context.CancelFunc
}

// Config goes by the transport to where a configuration leads.
func (t *Transport) Config(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) { return t.send(next, req) })
	})
	return cfg
}

// Run is the life of a process. A fault may end it, and then another may begin.
func (t *Transport) Run(ctx context.Context, process func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.dead, t.kill = false, cancel
	process(ctx)
}

// Writes are the methods and paths of what was written, or was about to be.
func (t *Transport) Writes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// send lets one request through at a time, so that writes have numbers.
func (t *Transport) send(next http.RoundTripper, req *http.Request) (resp *http.Response, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead {
		return nil, errKilled
	}
	if req.Method == http.MethodGet {
		return next.RoundTrip(req)
	}
	n := len(t.writes)
	t.writes = append(t.writes, req.Method+" "+req.URL.Path)
	if t.Before != nil {
		t.Before(n)
	}
	if t.Fault != nil && n == t.At {
		resp, err = t.Fault(next, req, func() { t.dead = true; t.kill() })
	} else {
		resp, err = next.RoundTrip(req)
	}
	if t.After != nil {
		t.After(req)
	}
	return resp, err
}
