package walk_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/walk"
)

func TestRunScripts(t *testing.T) {
	cases := map[string]struct {
		reason  string
		pages   []string
		cleanup bool
		options walk.Options
		want    string
		attempt map[string]int // requests per object, where they matter
	}{
		"every object is fine": {
			reason: "the plain case: nothing is left, so the cursor is the last key",
			pages:  []string{"a | b", "c | d: same"},
			want:   "3 migrated, 1 unchanged; cursor d; complete",
		},
		"nothing is there": {
			reason: "an empty collection is a complete walk",
			want:   "nothing done; complete",
		},
		"an empty page": {
			reason: "a server may filter a page down to nothing",
			pages:  []string{"", "a", ""},
			want:   "1 migrated; cursor a; complete",
		},
		"an object is gone": {
			reason: "a deleted object needs no migration",
			pages:  []string{"a: 404 | b", "c: 500 404"},
			want:   "1 migrated, 2 gone; cursor c; complete",
		},
		"a conflict in a rewrite": {
			reason:  "the action decides: this one defers, and a conflict is never retried here",
			pages:   []string{"a | b: 409 | c", "d"},
			want:    "3 migrated, 1 deferred; named b; complete",
			attempt: map[string]int{"b": 1},
		},
		"a conflict in a cleanup": {
			reason:  "the action decides: this one reads again and finds the work done",
			pages:   []string{"a | b: 409 ok | c: 409 404"},
			cleanup: true,
			want:    "1 migrated, 1 unchanged, 1 gone; cursor c; complete",
			attempt: map[string]int{"b": 2, "c": 2},
		},
		"faults that pass": {
			reason: "each is retried until it is over",
			pages: []string{
				"a: 429 500 ok | b: 429/7 ok | c: 502 503 504 ok",
				"d: refused refused ok | e: eof ok | f: reset timeout same",
			},
			want:    "5 migrated, 1 unchanged; cursor f; complete",
			attempt: map[string]int{"a": 3, "b": 2, "c": 4, "d": 3, "e": 2, "f": 3},
		},
		"a fault that stays": {
			reason:  "attempts are capped, and the cursor stops before the failure's page",
			pages:   []string{"a | b", "c: 500 | d", "e"},
			want:    "4 migrated, 1 failed; cursor b; named c; complete",
			attempt: map[string]int{"c": walk.DefaultAttempts},
		},
		"attempts capped by the caller": {
			reason:  "the option counts attempts, not retries",
			pages:   []string{"a: 503 503 ok | b: 503 ok"},
			options: walk.Options{Attempts: 2},
			want:    "1 migrated, 1 failed; named a; complete",
			attempt: map[string]int{"a": 2, "b": 2},
		},
		"an invalid object": {
			reason:  "422 does not pass with time",
			pages:   []string{"a | x/b: 422"},
			want:    "1 migrated, 1 failed; named x/b; complete",
			attempt: map[string]int{"x/b": 1},
		},
		"skipped objects": {
			reason: "the cursor passes a skipped object",
			pages:  []string{"a: skip | b: skip", "c"},
			want:   "1 migrated, 2 skipped; cursor c; complete",
		},
		"an action that returns no outcome": {
			reason: "the object counts as failed: the cursor does not pass it, and the report names it",
			pages:  []string{"a", "b: nil", "c"},
			want:   "2 migrated, 1 failed; cursor a; named b; complete",
		},
		"an action that fails without a reason": {
			reason: "the report names every failure that it has room for",
			pages:  []string{"a | b: mute"},
			want:   "1 migrated, 1 failed; named b; complete",
		},
		"the caller's own Retry": {
			reason: "Retry replaces Transient",
			pages:  []string{"a: 422 ok | b: 500 ok"},
			options: walk.Options{Retry: func(err error) (time.Duration, bool) {
				return 0, apierrors.IsInvalid(err)
			}},
			want: "1 migrated, 1 failed; named b; complete",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, pages := collection(tc.pages...)
				act := s.rewrite
				if tc.cleanup {
					act = s.cleanup
				}
				report, err := walk.Run(t.Context(), pages, act, tc.options)
				if err != nil {
					t.Fatalf("%s: Run: %v", tc.reason, err)
				}
				if diff := cmp.Diff(tc.want, prose(report)); diff != "" {
					t.Errorf("%s: report (-want +got):\n%s", tc.reason, diff)
				}
				for key, want := range tc.attempt {
					if got := s.requested(key); got != want {
						t.Errorf("%s: %d requests for %s, want %d", tc.reason, got, key, want)
					}
				}
				if report.Remaining != 0 {
					t.Errorf("%s: Remaining = %d after a complete walk", tc.reason, report.Remaining)
				}
			})
		})
	}
}

// TestRunCountsExactly plays random scripts with known outcomes, and compares every
// report with what the action has done.
func TestRunCountsExactly(t *testing.T) {
	endings := map[string]godwit.Outcome{
		"ok": godwit.Migrated, "same": godwit.Unchanged, "skip": godwit.Skipped, "404": godwit.Gone,
		"409": godwit.Deferred, "422": godwit.Failed, "nil": godwit.Failed,
	}
	good := []string{"ok", "ok", "ok", "same", "skip", "404"}
	bad := []string{"409", "422", "nil"}
	faults := []string{"429", "429/2", "500", "502", "503", "504", "refused", "eof", "reset", "5ms"}

	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			var want godwit.Counts
			var pages []string
			ending := map[string]godwit.Outcome{}
			wantCursor, intact := "", true
			for p := range 12 {
				var objects []string
				for o := range 1 + rnd.IntN(40) {
					key := fmt.Sprintf("p%02d/o%02d", p, o)
					end := good[rnd.IntN(len(good))]
					if p > 5 && rnd.IntN(50) == 0 {
						end = bad[rnd.IntN(len(bad))]
					}
					var words []string
					for range rnd.IntN(3) {
						if f := faults[rnd.IntN(len(faults))]; f != "5ms" {
							words = append(words, f)
						}
					}
					ending[key] = endings[end]
					want.Add(ending[key])
					intact = intact && !slices.Contains(bad, end)
					objects = append(objects, key+": "+strings.Join(append(words, end), " "))
				}
				pages = append(pages, strings.Join(objects, "|"))
				if intact {
					wantCursor = fmt.Sprintf("p%02d/o%02d", p, len(objects)-1)
				}
			}

			synctest.Test(t, func(t *testing.T) {
				s, source := collection(pages...)
				var mu sync.Mutex
				over := map[string]bool{} // settled, as the action knows it
				act := func(ctx context.Context, b *bird) (godwit.Outcome, error) {
					outcome, err := s.rewrite(ctx, b)
					if err == nil && outcome != 0 {
						mu.Lock()
						over[walk.Key(b)] = true
						mu.Unlock()
					}
					return outcome, err
				}
				var calls atomic.Int64
				report, err := walk.Run(t.Context(), source, act, walk.Options{
					OnObject: func(r walk.Report) {
						if n := calls.Add(1); n != r.Counts.Total() {
							t.Errorf("call %d of OnObject sees %d objects", n, r.Counts.Total())
						}
						mu.Lock()
						defer mu.Unlock()
						for key := range ending {
							if key <= r.Cursor && !over[key] {
								t.Errorf("cursor %s passed %s", r.Cursor, key)
							}
						}
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, report.Counts); diff != "" {
					t.Errorf("counts (-want +got):\n%s", diff)
				}
				if report.Cursor != wantCursor {
					t.Errorf("Cursor = %q, want %q", report.Cursor, wantCursor)
				}
			})
		})
	}
}

func TestRunBoundsTheFailureSample(t *testing.T) {
	var page []string
	for i := range 300 {
		page = append(page, fmt.Sprintf("o%03d: 422", i))
	}
	cases := map[string]struct{ limit, want int }{
		"by default":  {0, walk.DefaultFailures},
		"as told":     {3, 3},
		"all of them": {1000, 300},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, pages := collection(strings.Join(page, "|"))
			var mine []godwit.Failure
			report, err := walk.Run(t.Context(), pages, s.rewrite, walk.Options{
				MaxFailures: tc.limit,
				OnObject: func(r walk.Report) {
					if r.Counts.Failed == 3 { // when append has left room for a fourth
						mine = append(r.Failures, godwit.Failure{Name: "mine"}) //nolint:gocritic // this is what must not reach the report
					}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(report.Failures); got != tc.want {
				t.Errorf("%d failures named, want %d", got, tc.want)
			}
			if report.Counts.Failed != 300 {
				t.Errorf("Failed = %d, want 300: MaxFailures must not bound the count", report.Counts.Failed)
			}
			if len(mine) != 4 || mine[3].Name != "mine" {
				t.Errorf("the failure that OnObject appended became %v", mine[3:])
			}
		})
	}
}

func TestRunReportsRemaining(t *testing.T) {
	s, known := collection("a | b", "c | d | e", "f")
	unknown := func(yield func(walk.Page[*bird], error) bool) {
		for p, err := range known {
			p.Remaining = -1
			if !yield(p, err) {
				return
			}
		}
	}
	cases := map[string]struct {
		reason string
		pages  walk.Source[*bird]
		want   func(walk.Report) int64
	}{
		"reported by the server":     {"an object is counted or remains, also while it is under way", known, func(r walk.Report) int64 { return 6 - r.Counts.Total() }},
		"not reported by the server": {"a server reports nothing with a selector", unknown, func(walk.Report) int64 { return -1 }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			check := func(r walk.Report) {
				if want := tc.want(r); r.Remaining != want {
					t.Errorf("%s: Remaining = %d with %d counted, want %d", tc.reason, r.Remaining, r.Counts.Total(), want)
				}
			}
			report, err := walk.Run(t.Context(), tc.pages, s.rewrite, walk.Options{
				OnPage:   func(_ context.Context, r walk.Report) error { check(r); return nil },
				OnObject: check,
			})
			if err != nil {
				t.Fatal(err)
			}
			if report.Remaining != 0 || report.ResourceVersion != "102" {
				t.Errorf("at the end: Remaining %d, resourceVersion %s; want 0, 102",
					report.Remaining, report.ResourceVersion)
			}
		})
	}
}

func TestRunCursorWaitsForObjectsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, pages := collection("a: 5s | b", "c | d", "e: 9s")
		var seen []string
		_, err := walk.Run(t.Context(), pages, s.rewrite, walk.Options{
			OnObject: func(r walk.Report) { seen = append(seen, fmt.Sprint(r.Counts.Migrated, r.Cursor)) },
		})
		if err != nil {
			t.Fatal(err)
		}
		// b, c and d are done at once, but only a, after five seconds, lets
		// the cursor go, past both pages at once.
		want := []string{"1", "2", "3", "4d", "5e"}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("done and cursor after each object (-want +got):\n%s", diff)
		}
	})
}

func TestRunRetriesDoNotDelayOtherObjects(t *testing.T) {
	cases := map[string]struct {
		reason string
		before int // retried objects that are done before
		hot    int // objects that are retried
	}{
		"one":                          {"its waits cost no worker", 0, 1},
		"as many as may be parked":     {"their waits cost no worker", 0, walk.MaxParked},
		"as many after as many others": {"objects that are done are not parked", walk.MaxParked, walk.MaxParked},
		"more than may be parked":      {"no other object is begun, and all reach their end", 0, walk.MaxParked + 40},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const cold = 1000
				var early, page []string
				for i := range tc.before {
					early = append(early, fmt.Sprintf("a%04d: 429 ok", i))
				}
				for i := range tc.hot {
					page = append(page, fmt.Sprintf("hot%04d: 429/15 429/15 ok", i))
				}
				for i := range cold {
					page = append(page, fmt.Sprintf("cold%04d", i))
				}
				s, pages := collection(strings.Join(early, "|"), strings.Join(page, "|"))
				var coldDone atomic.Int64
				act := func(ctx context.Context, b *bird) (godwit.Outcome, error) {
					outcome, err := s.rewrite(ctx, b)
					switch {
					case strings.HasPrefix(b.name, "cold"):
						coldDone.Add(1)
					case strings.HasPrefix(b.name, "hot") && outcome == godwit.Migrated &&
						tc.hot <= walk.MaxParked && coldDone.Load() < cold:
						t.Errorf("%s: %s ended before %d others", tc.reason, b.name, cold-coldDone.Load())
					}
					return outcome, err
				}
				report, err := walk.Run(t.Context(), slowly(pages), act,
					// With one worker, a retry that kept it would delay all others.
					walk.Options{Limiter: walk.NewLimiter(walk.Limits{MaxInFlight: 1})})
				if err != nil {
					t.Fatal(err)
				}
				if got, want := report.Counts.Migrated, int64(tc.before+tc.hot+cold); got != want {
					t.Errorf("%s: Migrated = %d, want %d", tc.reason, got, want)
				}
			})
		})
	}
}

// slowly lets a minute pass after each page.
func slowly(pages walk.Source[*bird]) walk.Source[*bird] {
	return func(yield func(walk.Page[*bird], error) bool) {
		for p, err := range pages {
			if !yield(p, err) {
				return
			}
			time.Sleep(time.Minute)
		}
	}
}

// TestRunIsNotCompleteWhenItsListWasCutShort: the source of a walk may have a context
// of its own. When that ends, the walk has not seen every object.
func TestRunIsNotCompleteWhenItsListWasCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listing, cut := context.WithCancel(t.Context())
		defer cut()
		s, _ := collection()
		pages := walk.List(listing, func(ctx context.Context, _ int64, token string) (walk.Page[*bird], string, error) {
			return walk.Page[*bird]{Items: []*bird{{name: "a" + token}}}, token + "a", nil
		}, walk.ListOptions{})
		n := 0
		report, err := walk.Run(t.Context(), pages, s.rewrite, walk.Options{
			OnPage: func(context.Context, walk.Report) error {
				if n++; n == 3 {
					cut()
				}
				return nil
			},
		})
		if !errors.Is(err, context.Canceled) || report.Complete {
			t.Errorf("Run returned %v, complete %v; want the list's end as an error", err, report.Complete)
		}
	})
}

func TestKeysSortInStorageOrder(t *testing.T) {
	got := []string{
		walk.Key(&bird{"a-b", "x"}),
		walk.Key(&bird{"a", "y"}),
		walk.Key(&bird{"a", "x"}),
		walk.Key(&bird{"", "cluster-scoped"}),
	}
	slices.Sort(got)
	// "-" sorts before "/", so namespace a-b comes before namespace a.
	if diff := cmp.Diff([]string{"a-b/x", "a/x", "a/y", "cluster-scoped"}, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
