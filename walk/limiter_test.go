package walk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/walk"
)

// crowd sends n requests from as many goroutines and waits for them.
func crowd(ctx context.Context, rt http.RoundTripper, n int, method string) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { _ = send(ctx, rt, method, "") })
	}
	wg.Wait()
}

func allowed(l *walk.Limiter) int {
	_, a := l.InFlight()
	return a
}

// grown is a limiter that has raised its allowance to 16.
func grown(t *testing.T, w *wire, limits walk.Limits) (*walk.Limiter, http.RoundTripper) {
	t.Helper()
	limits.MaxInFlight = 16
	l := walk.NewLimiter(limits)
	rt := l.RoundTripper(w)
	answer := w.answer
	w.answer = after(10 * time.Millisecond)
	for range 10 {
		crowd(t.Context(), rt, 32, http.MethodGet)
	}
	if got := allowed(l); got != 16 {
		t.Fatalf("a healthy server got %d at once after 320 answers, want 16", got)
	}
	w.answer = answer
	w.reset()
	return l, rt
}

func TestLimiterNeverExceedsItsMaximum(t *testing.T) {
	for _, most := range []int{1, 3, 16} {
		t.Run(fmt.Sprint("at most ", most), func(t *testing.T) {
			var now, peak atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := now.Add(1)
				defer now.Add(-1)
				for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
				}
				if rand.IntN(20) == 0 {
					w.WriteHeader(http.StatusTooManyRequests)
				}
			}))
			defer srv.Close()
			l := walk.NewLimiter(walk.Limits{MaxInFlight: most})
			client := &http.Client{Transport: l.RoundTripper(srv.Client().Transport)}
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					for range 20 {
						resp, err := client.Post(srv.URL, "", http.NoBody)
						if err != nil {
							t.Error(err)
							return
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					}
				})
			}
			wg.Wait()
			if got := int(peak.Load()); got > most {
				t.Errorf("the server saw %d at once, want at most %d", got, most)
			}
			if inFlight, allowed := l.InFlight(); inFlight != 0 || allowed < 1 || allowed > most {
				t.Errorf("at rest %d in flight, %d allowed, want 0 and 1 to %d", inFlight, allowed, most)
			}
		})
	}
}

func TestLimiterAdapts(t *testing.T) {
	slowly := func(d time.Duration, code int) func(*http.Request) (*http.Response, error) {
		return func(*http.Request) (*http.Response, error) {
			time.Sleep(d)
			return reply(code, "")
		}
	}
	cases := map[string]struct {
		reason string
		answer func(*http.Request) (*http.Response, error)
		crowds []int // requests sent at once, one crowd after the other
		want   []int // allowed after each crowd
	}{
		"sixteen 429 at once": {
			reason: "sixteen answers to one load count once",
			answer: slowly(10*time.Millisecond, 429),
			crowds: []int{16},
			want:   []int{8},
		},
		"503 again and again": {
			reason: "each halves the allowance, down to 1",
			answer: slowly(10*time.Millisecond, 503),
			crowds: []int{16, 8, 4, 2, 1, 1},
			want:   []int{8, 4, 2, 1, 1, 1},
		},
		"conflicts and missing objects": {
			reason: "a 409 is an answer of a healthy server",
			answer: slowly(10*time.Millisecond, 409),
			crowds: []int{16},
			want:   []int{16},
		},
		"writes far slower than the floor": {
			reason: "latency is strain too",
			answer: func() func(*http.Request) (*http.Response, error) {
				var n atomic.Int64
				return func(*http.Request) (*http.Response, error) {
					if n.Add(1) == 1 {
						return after(20 * time.Millisecond)(nil)
					}
					return after(2 * time.Second)(nil)
				}
			}(),
			crowds: []int{1, 16},
			want:   []int{16, 8},
		},
		"writes as slow as ever": {
			reason: "a webhook that is slow at any load is no strain",
			answer: slowly(2*time.Second, 200),
			crowds: []int{16, 16},
			want:   []int{16, 16},
		},
		"a lost connection": {
			reason: "sixteen lost requests are one outage",
			answer: func(*http.Request) (*http.Response, error) {
				time.Sleep(10 * time.Millisecond)
				return nil, refused()
			},
			crowds: []int{16},
			want:   []int{1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire(tc.answer)
				l, rt := grown(t, w, walk.Limits{})
				var got []int
				for _, n := range tc.crowds {
					time.Sleep(time.Millisecond) // in the bubble no time passes by itself
					crowd(t.Context(), rt, n, http.MethodPatch)
					got = append(got, allowed(l))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: allowed after each crowd (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

func TestLimiterGrowsOnlyWhereItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := walk.NewLimiter(walk.Limits{MaxInFlight: 16})
		rt := l.RoundTripper(newWire(after(time.Millisecond)))
		before := allowed(l)
		for range 100 {
			crowd(t.Context(), rt, 1, http.MethodGet)
		}
		if got := allowed(l); got != before {
			t.Errorf("one request at a time raised the allowance from %d to %d", before, got)
		}
	})
}

func TestRetryAfterDelaysAllRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		w := newWire(func(*http.Request) (*http.Response, error) {
			switch n.Add(1) {
			case 1:
				return reply(http.StatusTooManyRequests, "3")
			case 2:
				return reply(http.StatusServiceUnavailable, "600")
			}
			return reply(http.StatusOK, "")
		})
		_, rt := grown(t, w, walk.Limits{})
		crowd(t.Context(), rt, 1, http.MethodPatch)
		crowd(t.Context(), rt, 1, http.MethodGet)
		crowd(t.Context(), rt, 2, http.MethodGet)
		// By the bubble's clock. Ten minutes are cut to MaxDelay.
		second := 3*time.Second + walk.MaxDelay
		want := []time.Duration{0, 3 * time.Second, second, second}
		if diff := cmp.Diff(want, w.starts); diff != "" {
			t.Errorf("requests started at (-want +got):\n%s", diff)
		}
	})
}

// TestUnfilledCacheDelaysNoOther: a 429 of a watch cache that is not filled yet is about one resource, and no sign of strain.
// The client that asked reads the whole answer.
func TestUnfilledCacheDelaysNoOther(t *testing.T) {
	const message = `{"kind":"Status","code":429,"message":"storage is (re)initializing","details":{"retryAfterSeconds":1}}`
	synctest.Test(t, func(t *testing.T) {
		var got string
		w := newWire(func(*http.Request) (*http.Response, error) {
			r, err := reply(http.StatusTooManyRequests, "1")
			r.Body = io.NopCloser(strings.NewReader(message))
			return r, err
		})
		l, rt := grown(t, w, walk.Limits{})
		_, before := l.InFlight()
		for range 2 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://kube-apiserver/", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			got += string(text)
			if err := errors.Join(err, resp.Body.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]time.Duration{0, 0}, w.starts); diff != "" {
			t.Errorf("requests started at (-want +got):\n%s", diff)
		}
		if _, after := l.InFlight(); after != before {
			t.Errorf("%d requests may be in flight, want %d as before", after, before)
		}
		if got != message+message {
			t.Errorf("read %q, want the answer twice", got)
		}
	})
}

// TestLongerRetryAfterWins: an answer may close the gate for longer in the moment in
// which it would open.
func TestLongerRetryAfterWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(func(req *http.Request) (*http.Response, error) {
			switch req.URL.Path {
			case "/short":
				return reply(http.StatusTooManyRequests, "2")
			case "/long": // arrives when the short one's time is up
				time.Sleep(2 * time.Second)
				return reply(http.StatusTooManyRequests, "5")
			case "/shorter": // would open the gate earlier
				time.Sleep(3 * time.Second)
				return reply(http.StatusTooManyRequests, "1")
			}
			return reply(http.StatusOK, "")
		})
		_, rt := grown(t, w, walk.Limits{})
		var wg sync.WaitGroup
		for _, path := range []string{"long", "shorter", "short"} {
			wg.Go(func() { _ = send(t.Context(), rt, http.MethodPatch, path) })
			synctest.Wait() // until it is sent
		}
		time.Sleep(2500 * time.Millisecond)
		_ = send(t.Context(), rt, http.MethodGet, "next")
		wg.Wait()
		if got, want := w.starts[3], 7*time.Second; got != want {
			t.Errorf("the next request started at %v, want %v", got, want)
		}
	})
}

func TestWriteCapDoesNotDelayReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(after(0))
		_, rt := grown(t, w, walk.Limits{MaxWritesPerSecond: 4})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() { _ = send(t.Context(), rt, http.MethodPatch, "write") })
			if i == 3 {
				wg.Go(func() { crowd(t.Context(), rt, 16, http.MethodGet) })
			}
		}
		wg.Wait()
		var writes, reads []time.Duration
		for i, path := range w.paths {
			if path == "/write" {
				writes = append(writes, w.starts[i])
			} else {
				reads = append(reads, w.starts[i])
			}
		}
		var want []time.Duration
		for i := range 8 {
			want = append(want, time.Duration(i)*250*time.Millisecond)
		}
		if diff := cmp.Diff(want, writes); diff != "" {
			t.Errorf("writes started at (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(make([]time.Duration, 16), reads); diff != "" {
			t.Errorf("reads started at (-want +got):\n%s", diff)
		}
	})
}

// TestWriteCapHoldsWhenTheGateOpens: writers that wait for a closed gate must not
// start all at once when it opens.
func TestWriteCapHoldsWhenTheGateOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		w := newWire(func(*http.Request) (*http.Response, error) {
			if n.Add(1) == 1 {
				return reply(http.StatusTooManyRequests, "10")
			}
			return reply(http.StatusOK, "")
		})
		_, rt := grown(t, w, walk.Limits{MaxWritesPerSecond: 1})
		crowd(t.Context(), rt, 1, http.MethodPatch)
		crowd(t.Context(), rt, 6, http.MethodPatch)
		for i, at := range w.starts[1:] {
			// A token bucket of one may hold one token.
			if least := 10*time.Second + time.Duration(max(0, i-1))*time.Second; at < least {
				t.Errorf("write %d started at %v, want %v at the earliest", i+1, at, least)
			}
		}
	})
}

func TestRequestsStartInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(after(time.Second))
		rt := walk.NewLimiter(walk.Limits{MaxInFlight: 1}).RoundTripper(w)
		var wg sync.WaitGroup
		var want []string
		for i := range 10 {
			want = append(want, fmt.Sprint("/", i))
			method := []string{http.MethodGet, http.MethodPatch}[i%2]
			wg.Go(func() { _ = send(t.Context(), rt, method, fmt.Sprint(i)) })
			synctest.Wait() // until it is queued
		}
		wg.Wait()
		if diff := cmp.Diff(want, w.paths); diff != "" {
			t.Errorf("served (-want +got):\n%s", diff)
		}
	})
}

func TestCanceledRequestFreesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tired := errors.New("tired")
		w := newWire(after(time.Second))
		l := walk.NewLimiter(walk.Limits{MaxInFlight: 1})
		rt := l.RoundTripper(w)
		ctx, leave := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		var left error
		wg.Go(func() { _ = send(t.Context(), rt, http.MethodGet, "first") })
		synctest.Wait()
		wg.Go(func() { left = send(ctx, rt, http.MethodGet, "leaves") })
		synctest.Wait()
		wg.Go(func() { _ = send(t.Context(), rt, http.MethodGet, "stays") })
		synctest.Wait()
		leave(tired)
		wg.Wait()
		if !errors.Is(left, tired) {
			t.Errorf("the canceled request got %v, want %v", left, tired)
		}
		if diff := cmp.Diff([]string{"/first", "/stays"}, w.paths); diff != "" {
			t.Errorf("served (-want +got):\n%s", diff)
		}
	})
}

// TestCancellationLosesNoSlot cancels requests at any moment, also while they are
// being admitted.
func TestCancellationLosesNoSlot(t *testing.T) {
	l := walk.NewLimiter(walk.Limits{MaxInFlight: 2, MaxWritesPerSecond: 1e6})
	rt := l.RoundTripper(newWire(func(*http.Request) (*http.Response, error) {
		return reply(http.StatusOK, "")
	}))
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				_ = send(ctx, rt, []string{http.MethodGet, http.MethodPatch}[i%2], "")
				cancel()
			}
		})
	}
	wg.Wait()
	if now, _ := l.InFlight(); now != 0 {
		t.Errorf("%d in flight at rest, want 0", now)
	}
	if err := send(t.Context(), rt, http.MethodPatch, ""); err != nil {
		t.Error(err)
	}
}

type body struct{ closed bool }

func (b *body) Read([]byte) (int, error) { return 0, io.EOF }
func (b *body) Close() error             { b.closed = true; return nil }

func TestUnsentRequestClosesItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := walk.NewLimiter(walk.Limits{MaxInFlight: 1}).RoundTripper(newWire(after(time.Second)))
		go func() { _ = send(t.Context(), rt, http.MethodGet, "") }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b := &body{}
		req, _ := http.NewRequestWithContext(ctx, http.MethodPatch, "http://server", b)
		if _, err := rt.RoundTrip(req); err == nil || !b.closed {
			t.Errorf("RoundTrip: %v, body closed: %v; a RoundTripper must close it", err, b.closed)
		}
		time.Sleep(time.Minute)
	})
}
