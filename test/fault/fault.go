// Package fault intercepts the requests of a program to a real API server. It numbers the
// program's writes, calls a test before and after each of them, and makes one of them
// fail: the process is killed, the answer is lost, or another client was faster.
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

// Fault handles one write.
type Fault func(next http.RoundTripper, req *http.Request, kill func()) (*http.Response, error)

var errKilled = errors.New("the process was killed")

// All returns the faults that can happen to any write, by name.
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
		"answered by 429": func(http.RoundTripper, *http.Request, func()) (*http.Response, error) {
			return answer(http.StatusTooManyRequests, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`), nil
		},
		"answered by 500, though it was written": func(next http.RoundTripper, req *http.Request, _ func()) (*http.Response, error) {
			send(next, req)
			return answer(http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`), nil
		},
	}
}

// Occupied creates the object as another client right before the program does, so that the
// server answers AlreadyExists. change changes the body of the other client; nil keeps it.
// Writes that are not creations succeed.
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

// Transport intercepts the requests of one process.
type Transport struct {
	// Fault handles write number At, counted from 0; nil for none.
	Fault Fault
	At    int
	// Before, if set, is called with the number of each write before it is sent.
	Before func(int)
	// After, if set, is called after each write that was sent, with any result.
	After func(*http.Request)

	mu     sync.Mutex
	writes []string
	dead   bool
	kill   context.CancelFunc
}

// Config returns a copy of a configuration whose requests pass the transport.
func (t *Transport) Config(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) { return t.send(next, req) })
	})
	return cfg
}

// Run runs a process, until it returns or a fault kills it. Run may then be called again.
func (t *Transport) Run(ctx context.Context, process func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.dead, t.kill = false, cancel
	process(ctx)
}

// Writes returns the methods and paths of all writes, including those that were not sent.
func (t *Transport) Writes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// send sends one request at a time, so that writes have numbers.
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
