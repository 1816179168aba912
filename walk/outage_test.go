package walk_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/walk"
)

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
