package walk_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-dev/godwit/walk"
)

// TestNarrow: one walk keeps to its own bounds, and all of them to those of the
// limiter that they share.
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
			t.Errorf("%d at once of the narrow walk, %d of all, want at most 2 and 6", one.most.Load(), all.most.Load())
		}
	})
}

// TestNarrowLimitersShareTheByteBudget, or a limit for one walk would let it take
// a budget of its own.
func TestNarrowLimitersShareTheByteBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := walk.NewLimiter(walk.Limits{MaxBytesPerFiveMinutes: 10 << 20})
		narrow := shared.Narrow(walk.Limits{MaxInFlight: 1, MaxBytesPerFiveMinutes: -1})
		shared.Book(10 << 20)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := narrow.Write(ctx, func(context.Context) (int64, error) { return 1, nil }); err == nil {
			t.Error("the narrow walk wrote although the budget of all was used up")
		}
	})
}

type busyCount struct{ now, most atomic.Int64 }

func (b *busyCount) enter() (leave func()) {
	n := b.now.Add(1)
	for most := b.most.Load(); n > most && !b.most.CompareAndSwap(most, n); most = b.most.Load() {
	}
	return func() { b.now.Add(-1) }
}
