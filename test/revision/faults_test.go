package revision_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/revision"
)

// fault is what befalls one write.
type fault func(next http.RoundTripper, req *http.Request, kill func()) (*http.Response, error)

var errKilled = errors.New("the process was killed")

// faults are what an upgrade has to survive at every single write.
var faults = map[string]fault{
	"killed before the write": func(_ http.RoundTripper, _ *http.Request, kill func()) (*http.Response, error) {
		kill()
		return nil, errKilled
	},
	"killed after the write": func(next http.RoundTripper, req *http.Request, kill func()) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		kill()
		if err == nil {
			_ = resp.Body.Close()
		}
		return nil, errKilled
	},
	"answered by a conflict": func(http.RoundTripper, *http.Request, func()) (*http.Response, error) {
		return answer(http.StatusConflict, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`), nil
	},
	"answered by 500, though it was written": func(next http.RoundTripper, req *http.Request, _ func()) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return answer(http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`), nil
	},
}

func answer(code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(body)),
	}
}

// watched is a transport that looks at the invariant after every write, and has a
// fault befall one of them.
type watched struct {
	c     *corner
	at    int // the write that the fault befalls; -1: none
	fault fault

	mu     sync.Mutex
	writes []string
	dead   bool
	wrong  error
	kill   context.CancelFunc
}

func (w *watched) config() *rest.Config {
	cfg := shared.Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) { return w.send(next, req) })
	})
	return cfg
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// send lets one request through at a time, so that writes have numbers.
func (w *watched) send(next http.RoundTripper, req *http.Request) (resp *http.Response, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return nil, errKilled
	}
	if req.Method == http.MethodGet {
		return next.RoundTrip(req)
	}
	n := len(w.writes)
	w.writes = append(w.writes, req.Method+" "+req.URL.Path)
	if n == w.at {
		resp, err = w.fault(next, req, func() { w.dead = true; w.kill() })
	} else {
		resp, err = next.RoundTrip(req)
	}
	if wrong := w.c.unresolved(); wrong != nil && w.wrong == nil {
		w.wrong = fmt.Errorf("after %s: %w", w.writes[n], wrong)
	}
	return resp, err
}

// pass runs the upgrader once. It may be killed.
func (w *watched) pass(u *revision.Upgrader) {
	ctx, cancel := context.WithCancel(w.c.t.Context())
	defer cancel()
	w.kill = cancel
	_, _ = u.Run(ctx, revision.Scope{Namespace: w.c.namespace}, nil)
}

// TestEveryWriteMayGoWrong: a fault befalls one write after the other, in the
// upgrade and in the removal that follows the retention, and the next pass goes on.
// After every single write each reference leads to a revision that can be read, and
// in the end nothing is left of the old version, nor a revision too many.
func TestEveryWriteMayGoWrong(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 0; ; at++ {
				c := newCorner(t)
				c.soup()
				w := &watched{c: c, at: at, fault: fault}
				w.pass(c.upgrader(w.config(), revision.Policy{}))
				c.run(revision.Policy{}) // whoever comes next, and is not disturbed
				c.clock.SetTime(c.clock.Now().Add(2 * revision.DefaultRetention))
				w.dead = false
				w.pass(c.upgrader(w.config(), revision.Policy{}))
				c.run(revision.Policy{})

				if w.wrong != nil {
					t.Errorf("write %d: %v", at, w.wrong)
				}
				if got := c.revisions(); !slices.Equal(got, []string{"soup-recipe-v2", "soup-sauce-v2"}) {
					t.Errorf("write %d of %q: revisions %v in the end", at, w.writes, got)
				}
				if at >= len(w.writes) {
					t.Logf("%d writes: %q", len(w.writes), w.writes)
					return
				}
			}
		})
	}
}
