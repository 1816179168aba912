package walk_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/walk"
)

// TestStopDropsRequestsThatWaitForTheRate: with a low rate their wait would be longer
// than the grace.
func TestStopDropsRequestsThatWaitForTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(after(0))
		l := walk.NewLimiter(walk.Limits{MaxWritesPerSecond: 0.1})
		rt := l.RoundTripper(w)
		var names []string
		for i := range 100 {
			names = append(names, fmt.Sprintf("o%03d", i))
		}
		_, pages := collection(strings.Join(names, "|"))
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(15*time.Second, func() { cancel(enough) })
		begun := time.Now()
		report, err := walk.Run(ctx, pages, func(ctx context.Context, b *bird) (godwit.Outcome, error) {
			if err := send(ctx, rt, http.MethodPatch, walk.Key(b)); err != nil {
				return godwit.Failed, err
			}
			return godwit.Migrated, nil
		}, walk.Options{Limiter: l})
		if !errors.Is(err, enough) {
			t.Errorf("Run = %v, want %v", err, enough)
		}
		if took := time.Since(begun); took != 15*time.Second {
			t.Errorf("the walk ended after %v, want 15s, when it was told to", took)
		}
		if report.Counts.Migrated != 2 || report.Counts.Failed != 0 || int64(len(w.paths)) != 2 {
			t.Errorf("%s, %d sent: want the two writes of the first 15 s and no failure", prose(report), len(w.paths))
		}
	})
}

// TestReviewsAreNotPacedAsWrites: a review is posted, but changes nothing.
func TestReviewsAreNotPacedAsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(after(0))
		rt := walk.NewLimiter(walk.Limits{MaxWritesPerSecond: 1}).RoundTripper(w)
		for range 5 {
			_ = send(t.Context(), rt, http.MethodPost, "apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
		}
		if last := w.starts[len(w.starts)-1]; last != 0 {
			t.Errorf("the last review was sent after %v, want at once", last)
		}
		for range 2 {
			_ = send(t.Context(), rt, http.MethodPost, "apis/apps/v1/namespaces/ns/controllerrevisions")
		}
		if last := w.starts[len(w.starts)-1]; last != time.Second {
			t.Errorf("the second creation was sent after %v, want 1s", last)
		}
	})
}

// TestSlowAnswerToASingleRequestIsTheNewFloor: a server that is as slow for a single
// request does not count as strained.
func TestSlowAnswerToASingleRequestIsTheNewFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(after(10 * time.Millisecond))
		l := walk.NewLimiter(walk.Limits{MaxInFlight: 8})
		rt := l.RoundTripper(w)
		for range 20 {
			crowd(t.Context(), rt, 8, http.MethodPatch)
		}
		w.answer = after(2 * time.Second) // a webhook at any load
		for range 6 {
			crowd(t.Context(), rt, 8, http.MethodPatch)
		}
		if got := allowed(l); got < 3 {
			t.Errorf("%d may be in flight, want at least 3", got)
		}
	})
}

func TestRunStopsOnTheErrorOfOnPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		s, pages := collection("a: 2s | b: 500", "c", "d")
		page := 0
		report, err := walk.Run(t.Context(), pages, s.rewrite, walk.Options{
			OnPage: func(context.Context, walk.Report) error {
				if page++; page == 3 {
					return enough
				}
				return nil
			},
		})
		if !errors.Is(err, enough) {
			t.Errorf("Run returned %v, want the error of OnPage", err)
		}
		if diff := cmp.Diff("2 migrated, 1 deferred; named b", prose(report)); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
		if s.requested("d") != 0 {
			t.Error("Run acted on an object of the page for which OnPage returned an error")
		}
	})
}

// TestRunStops ends walks from several sides while an object is under way.
func TestRunStops(t *testing.T) {
	tired := errors.New("tired")
	cases := map[string]struct {
		reason string
		pages  []string
		stop   string // by the context, OnPage of page 2, or the source
		want   string
	}{
		"the context, within the grace": {
			reason: "a write that was sent is counted",
			pages:  []string{"a: 6s | b", "c"},
			stop:   "context",
			want:   "3 migrated; cursor c",
		},
		"the context, beyond the grace": {
			reason: "an abandoned object is deferred, not failed",
			pages:  []string{"a: hang | b", "c"},
			stop:   "context",
			want:   "2 migrated, 1 deferred; named a",
		},
		"OnPage, beyond the grace": {
			reason: "a stop by OnPage must not wait for ever",
			pages:  []string{"a: hang | b", "c"},
			stop:   "OnPage",
			want:   "1 migrated, 1 deferred; named a",
		},
		"the source, beyond the grace": {
			reason: "a failed list must not wait for ever",
			pages:  []string{"a: hang | b"},
			stop:   "source",
			want:   "1 migrated, 1 deferred; named a",
		},
		"the context, objects parked": {
			reason: "an object that waits for another attempt is deferred with the last reason",
			pages:  []string{"a: 429/15 | b: 503/15 | c", "d"},
			stop:   "context",
			want:   "2 migrated, 2 deferred; named a b",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				s, pages := collection(tc.pages...)
				options := walk.Options{}
				switch tc.stop {
				case "context": // one second in, with every page handed out and the source still open
					pages = wait(ctx, pages)
					time.AfterFunc(time.Second, func() { stop(tired) })
				case "OnPage":
					options.OnPage = func(_ context.Context, r walk.Report) error {
						if r.ResourceVersion == "101" {
							return tired
						}
						return nil
					}
				case "source":
					pages = then(pages, tired)
				}
				report, err := walk.Run(ctx, pages, s.rewrite, options)
				if !errors.Is(err, tired) {
					t.Errorf("%s: Run returned %v, want the reason of the stop", tc.reason, err)
				}
				if diff := cmp.Diff(tc.want, prose(report)); diff != "" {
					t.Errorf("%s: report (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// wait keeps a source open until the context ends, as a slow list does.
func wait(ctx context.Context, pages walk.Source[*bird]) walk.Source[*bird] {
	return func(yield func(walk.Page[*bird], error) bool) {
		for p, err := range pages {
			if !yield(p, err) {
				return
			}
		}
		<-ctx.Done()
		yield(walk.Page[*bird]{}, context.Cause(ctx))
	}
}

// TestRunDoesNotRetryAfterTheStop: a parked object whose wait is over may find every
// worker busy. When the walk is told to stop meanwhile, the object must not be
// written.
func TestRunDoesNotRetryAfterTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var page []string
		for i := range 50 {
			page = append(page, fmt.Sprintf("a%02d: 429 ok", i))
		}
		s, pages := collection(strings.Join(append(page, "b: 5s", "c"), "|"))
		time.AfterFunc(3*time.Second, stop)
		report, err := walk.Run(ctx, pages, s.rewrite, walk.Options{
			Limiter: walk.NewLimiter(walk.Limits{MaxInFlight: 1}),
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
		// Up to 50 were retried before b took the only worker, and none after.
		if got := report.Counts.Total(); got != 51 {
			t.Errorf("%d objects counted, want the 51 begun", got)
		}
		if s.requested("c") != 0 {
			t.Error("an object was begun after the stop")
		}
		for i := range 50 {
			if key := fmt.Sprintf("a%02d", i); s.requested(key) == 2 {
				t.Errorf("%s was retried after the stop", key)
			}
		}
	})
}

// TestRunEndsAtTheFirstAnswerThatEachRequestGets: no object is to blame for refused credentials or a full etcd, and no other one is tried.
func TestRunEndsAtTheFirstAnswerThatEachRequestGets(t *testing.T) {
	cases := map[string]struct{ answer, want string }{
		"the credentials are refused": {"401", "the server has asked for the client to provide credentials"},
		"etcd is full":                {"full", "database space exceeded"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, pages := collection("a | b: "+tc.answer+" | c", "d | e")
				report, err := walk.Run(t.Context(), pages, s.rewrite, walk.Options{Limiter: walk.NewLimiter(walk.Limits{MaxInFlight: 1})})
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("Run = %v, want the answer %q", err, tc.want)
				}
				if report.Counts.Failed != 0 || len(report.Failures) != 0 || report.Complete {
					t.Errorf("%s: want no failure of an object", prose(report))
				}
				if s.requested("b") != 1 || s.requested("d")+s.requested("e") > 0 {
					t.Errorf("b was tried %d times, and later pages %d times", s.requested("b"), s.requested("d")+s.requested("e"))
				}
			})
		})
	}
}
