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

	"github.com/godwit-dev/godwit"
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

func TestOneRequestProbesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const down = 30 * time.Second
		var w *wire
		w = newWire(func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Millisecond)
			if time.Since(w.began) < down {
				return nil, refused()
			}
			return reply(http.StatusOK, "")
		})
		l, rt := grown(t, w, walk.Limits{})
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 40 {
					for send(t.Context(), rt, http.MethodPatch, "") != nil {
					}
				}
			})
		}
		wg.Wait()

		var pauses []time.Duration
		for i := 16; w.starts[i-1] < down; i++ { // the first sixteen were under way when the outage began
			pauses = append(pauses, (w.starts[i] - w.starts[i-1]).Round(100*time.Millisecond))
		}
		want := []time.Duration{walk.FirstOutagePause}
		for at := want[0]; at < down; at += want[len(want)-1] {
			want = append(want, min(2*want[len(want)-1], walk.MaxOutagePause))
		}
		want = want[:min(len(want), len(pauses))] // the last pause may end after the outage
		if diff := cmp.Diff(want, pauses); diff != "" || len(pauses) < 8 {
			t.Errorf("pauses between probes (-want +got):\n%s", diff)
		}
		if got := allowed(l); got < 8 {
			t.Errorf("%d allowed at once, long after the outage", got)
		}

		w.reset() // down again
		crowd(t.Context(), rt, 1, http.MethodPatch)
		crowd(t.Context(), rt, 1, http.MethodPatch)
		if got := (w.starts[1] - w.starts[0]).Round(100 * time.Millisecond); got != walk.FirstOutagePause {
			t.Errorf("the next outage began with a pause of %v, want %v", got, walk.FirstOutagePause)
		}
	})
}

func TestAbortedRequestsAreNoOutage(t *testing.T) {
	cases := map[string]struct {
		reason string
		end    func(context.Context) (context.Context, context.CancelFunc)
		want   int
	}{
		"canceled": {
			reason: "a canceled request shows nothing about the server",
			end: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(10*time.Second, cancel)
				return ctx, cancel
			},
			want: 16,
		},
		"ended by its deadline": {
			reason: "a server that lets requests hang counts as one that is down",
			end: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 10*time.Second)
			},
			want: 1,
		},
		"sent too late": {
			reason: "the server had no time to answer",
			end: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 10*time.Millisecond)
			},
			want: 16,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, rt := grown(t, newWire(func(req *http.Request) (*http.Response, error) {
					<-req.Context().Done()
					return nil, req.Context().Err()
				}), walk.Limits{})
				ctx, cancel := tc.end(t.Context())
				defer cancel()
				crowd(ctx, rt, 16, http.MethodPatch)
				if got := allowed(l); got != tc.want {
					t.Errorf("%s: %d allowed, want %d", tc.reason, got, tc.want)
				}
				if now, _ := l.InFlight(); now != 0 {
					t.Errorf("%s: %d still in flight", tc.reason, now)
				}
			})
		})
	}
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

// TestTwoWalksShareOneBudget runs two walks over one HTTP server that answers 429 to
// more than three requests at once.
func TestTwoWalksShareOneBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var now, peak, strained int
		written := map[string]int{}
		srv := serve(t, func(rw http.ResponseWriter, r *http.Request) {
			mu.Lock()
			now++
			peak = max(peak, now)
			over := now > 3
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				now--
			}()
			time.Sleep(20 * time.Millisecond)
			if over {
				mu.Lock()
				strained++
				mu.Unlock()
				rw.Header().Set("Retry-After", "1")
				rw.WriteHeader(http.StatusTooManyRequests)
				return
			}
			mu.Lock()
			written[r.URL.Path]++
			mu.Unlock()
		})
		l := walk.NewLimiter(walk.Limits{MaxInFlight: 8})
		client := &http.Client{Transport: l.RoundTripper(srv)}
		act := func(ctx context.Context, b *bird) (godwit.Outcome, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPatch, "http://server/"+walk.Key(b), strings.NewReader("{}"))
			if err != nil {
				return godwit.Failed, err
			}
			resp, err := client.Do(req)
			if err != nil {
				return godwit.Failed, err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return godwit.Failed, status(fmt.Sprint(resp.StatusCode), resp.Header.Get("Retry-After"))
			}
			return godwit.Migrated, nil
		}
		const objects = 400
		var wg sync.WaitGroup
		var order []byte
		for _, name := range []string{"x", "y"} {
			wg.Go(func() {
				var page []string
				for i := range objects {
					page = append(page, fmt.Sprintf("%s/o%03d", name, i))
				}
				_, pages := collection(strings.Join(page, "|"))
				report, err := walk.Run(t.Context(), pages, act, walk.Options{
					Limiter:  l,
					Attempts: 100,
					OnObject: func(walk.Report) {
						mu.Lock()
						defer mu.Unlock()
						order = append(order, name[0])
					},
				})
				if err != nil || report.Counts.Migrated != objects {
					t.Errorf("walk %s: %s, %v", name, prose(report), err)
				}
			})
		}
		wg.Wait()
		if peak > 8 || strained == 0 {
			t.Errorf("the server saw %d requests at once and answered 429 to %d, want at most 8 and some", peak, strained)
		}
		if strained > objects/4 {
			t.Errorf("the server answered 429 to %d requests, want at most %d: the limiter did not adapt", strained, objects/4)
		}
		for path, n := range written {
			if n != 1 {
				t.Errorf("%s written %d times", path, n)
			}
		}
		if half := string(order[:objects]); strings.Count(half, "x") < objects/4 || strings.Count(half, "y") < objects/4 {
			t.Errorf("in the first half %d objects of x and %d of y: one walk starved the other",
				strings.Count(half, "x"), strings.Count(half, "y"))
		}
	})
}
