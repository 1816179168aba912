package walk_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/walk"
)

// TestNarrow shows that one walk keeps to its own bounds, and all walks to those of
// the limiter that they share.
func TestNarrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all, one busyCount
		srv := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			defer all.enter()()
			if strings.HasPrefix(r.URL.Path, "/one/") {
				defer one.enter()()
			}
			time.Sleep(20 * time.Millisecond)
		})
		shared := walk.NewLimiter(walk.Limits{MaxInFlight: 6})
		narrow := shared.Narrow(walk.Limits{MaxInFlight: 2})
		if narrow.MaxInFlight() != 2 || shared.Narrow(walk.Limits{}).MaxInFlight() != 6 || shared.Narrow(walk.Limits{MaxInFlight: 99}).MaxInFlight() != 6 {
			t.Error("a narrow limiter is never wider than the one it is made from")
		}
		var senders sync.WaitGroup
		send := func(l *walk.Limiter, path string) {
			client := &http.Client{Transport: l.RoundTripper(srv)}
			for range 20 {
				senders.Go(func() {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://server"+path, strings.NewReader("{}"))
					if err != nil {
						t.Error(err)
						return
					}
					resp, err := client.Do(req)
					if err != nil {
						t.Error(err)
						return
					}
					_ = resp.Body.Close()
				})
			}
		}
		send(narrow, "/one/a")
		send(shared, "/other/a")
		senders.Wait()
		if one.most.Load() > 2 || all.most.Load() > 6 || all.most.Load() < 3 {
			t.Errorf("%d requests at once of the narrow walk and %d of all, want at most 2 and 6", one.most.Load(), all.most.Load())
		}
	})
}

// TestNarrowLimitersShareTheByteBudget: a limit for one walk must not give it a
// budget of its own.
func TestNarrowLimitersShareTheByteBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := walk.NewLimiter(walk.Limits{MaxBytesPerFiveMinutes: 10 << 20})
		narrow := shared.Narrow(walk.Limits{MaxInFlight: 1, MaxBytesPerFiveMinutes: -1})
		shared.AddWritten(10 << 20)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := narrow.Write(ctx, func(context.Context) (int64, error) { return 1, nil }); err == nil {
			t.Error("the narrow walk wrote although the shared budget was used up")
		}
	})
}

// TestNarrowWalkSlowsDownAlone on 500, which the server answers when the webhook for
// the walk's own objects does not. Answers about the server itself slow down all
// walks.
func TestNarrowWalkSlowsDownAlone(t *testing.T) {
	for status, want := range map[int]struct{ narrow, shared int }{
		http.StatusInternalServerError: {1, 4},
		http.StatusServiceUnavailable:  {1, 1},
		http.StatusTooManyRequests:     {1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
			shared := walk.NewLimiter(walk.Limits{})
			narrow := shared.Narrow(walk.Limits{})
			client := &http.Client{Transport: narrow.RoundTripper(srv)}
			for range 5 {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://server/one/a", strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				time.Sleep(time.Millisecond) // the limiter ignores answers to requests sent before the last cut
			}
			_, ofOne := narrow.InFlight()
			if _, ofAll := shared.InFlight(); ofOne != want.narrow || ofAll != want.shared {
				t.Errorf("after %ds %d may be in flight of the narrow walk and %d of all, want %+v", status, ofOne, ofAll, want)
			}
		})
	}
}

type busyCount struct{ now, most atomic.Int64 }

func (b *busyCount) enter() (leave func()) {
	n := b.now.Add(1)
	for most := b.most.Load(); n > most && !b.most.CompareAndSwap(most, n); most = b.most.Load() {
	}
	return func() { b.now.Add(-1) }
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
