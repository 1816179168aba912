package walk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/walk"
)

// errWebhook is a failure that has another cause than the API server itself.
var errWebhook = errors.New("failed calling webhook")

// downIn fails for the objects of one namespace while down returns true, and counts
// the attempts there.
type downIn struct {
	namespace string
	down      func() bool
	takes     time.Duration

	mu       sync.Mutex
	attempts int
	last     time.Time // end of the last object elsewhere
}

func (d *downIn) act(_ context.Context, b *bird) (godwit.Outcome, error) {
	if b.namespace == d.namespace && d.down() {
		time.Sleep(d.takes)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.attempts++
		return godwit.Failed, fmt.Errorf("write %s: %w: %w", walk.Key(b), errWebhook, status("500", ""))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = time.Now()
	return godwit.Migrated, nil
}

func webhookCause(err error) string {
	if errors.Is(err, errWebhook) {
		return "the webhook"
	}
	return ""
}

func objectsIn(namespace string, n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("%s/%05d", namespace, i))
	}
	return strings.Join(list, "|")
}

func forever() bool { return true }

// TestRunFailingNamespaceDoesNotBlockOthers: the objects of one namespace fail, and
// come first in key order. The walk reaches its end, also where they are more than
// may wait.
func TestRunFailingNamespaceDoesNotBlockOthers(t *testing.T) {
	cases := map[string]struct {
		reason string
		bad    int
		takes  time.Duration
		within time.Duration // until the last object of the good namespaces
		most   int           // attempts in the bad namespace
	}{
		"fewer than may wait": {
			reason: "they wait while the others are written",
			bad:    200, within: time.Second, most: 200 * walk.DefaultAttempts,
		},
		"more than may wait": {
			reason: "once the cause is suspended, each is tried once",
			bad:    1000, within: 2 * time.Minute, most: 1000 + (walk.MaxParked+20)*walk.DefaultAttempts,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &downIn{namespace: "bad", down: forever, takes: tc.takes}
				_, pages := collection(objectsIn("bad", tc.bad), objectsIn("good", 1000), objectsIn("late", 1000))
				began := time.Now()
				report, err := walk.Run(t.Context(), pages, d.act, walk.Options{Cause: webhookCause})
				if err != nil || !report.Complete {
					t.Fatalf("%s: Run: %v, complete %v", tc.reason, err, report.Complete)
				}
				if want := (godwit.Counts{Migrated: 2000, Failed: int64(tc.bad)}); report.Counts != want {
					t.Errorf("%s: %+v, want %+v", tc.reason, report.Counts, want)
				}
				if took := d.last.Sub(began); took > tc.within {
					t.Errorf("%s: the last good object was written after %v, want %v at most", tc.reason, took, tc.within)
				}
				if d.attempts > tc.most {
					t.Errorf("%s: %d attempts in the bad namespace, want %d at most", tc.reason, d.attempts, tc.most)
				}
				if len(report.Failures) == 0 || !strings.Contains(report.Failures[0].Message, errWebhook.Error()) {
					t.Errorf("%s: failures %+v do not name the cause", tc.reason, report.Failures)
				}
			})
		})
	}
}

// TestRunWaitsForAWebhookThatRestarts: the webhook for every object does not answer
// for 20 seconds. No object fails, and few attempts are made.
func TestRunWaitsForAWebhookThatRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(20 * time.Second)
		d := &downIn{namespace: "ns", down: func() bool { return time.Now().Before(back) }}
		_, pages := collection(objectsIn("ns", 5000))
		report, err := walk.Run(t.Context(), pages, d.act, walk.Options{Cause: webhookCause})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(godwit.Counts{Migrated: 5000}, report.Counts); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
		if most := 2 * walk.MaxParked * walk.DefaultAttempts; d.attempts > most {
			t.Errorf("%d attempts, want %d at most", d.attempts, most)
		}
	})
}

// TestRunRetriesAgainWhenTheCauseIsGone: a probe shows that the cause is gone, and
// later failures are retried as at first.
func TestRunRetriesAgainWhenTheCauseIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		down := func() bool { // for five minutes, and for ten seconds later
			at := time.Since(began)
			return at < 5*time.Minute || 20*time.Minute < at && at < 20*time.Minute+10*time.Second
		}
		d := &downIn{namespace: "ns", down: down, takes: time.Second}
		_, pages := collection(objectsIn("ns", 3000))
		page := 0
		report, err := walk.Run(t.Context(), pages, func(ctx context.Context, b *bird) (godwit.Outcome, error) {
			time.Sleep(10 * time.Second)
			return d.act(ctx, b)
		}, walk.Options{Cause: webhookCause, OnPage: func(context.Context, walk.Report) error { page++; return nil }})
		if err != nil {
			t.Fatal(err)
		}
		if f := report.Counts.Failed; f == 0 || f > 700 {
			t.Errorf("%d objects failed, want those of the first five minutes, 1 to 700", f)
		}
		for _, f := range report.Failures {
			if f.Name > "00700" {
				t.Errorf("%s failed, long after the cause was gone", f.Name)
			}
		}
	})
}

// TestRunEndsWhenEveryRequestFails, with few objects begun.
func TestRunEndsWhenEveryRequestFails(t *testing.T) {
	for _, word := range []string{"refused", "503", "429", "504"} {
		t.Run(word, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				objects := strings.Split(objectsIn("ns", 5000), "|")
				for i := range objects {
					objects[i] += ": " + word
				}
				s, pages := collection(strings.Join(objects, "|"))
				report, err := walk.Run(t.Context(), pages, s.rewrite, walk.Options{Cause: webhookCause})
				if err == nil || report.Complete {
					t.Errorf("Run: %v, complete %v, want an error", err, report.Complete)
				}
				if most := int64(2*walk.MaxParked + walk.MaxExhausted); report.Counts.Total() > most {
					t.Errorf("%d objects were begun, want %d at most", report.Counts.Total(), most)
				}
			})
		})
	}
}

// TestRunUnfinishedOutcomeStands: an action has other work left after the work that
// Run counts. The outcome stands, however that other work ends.
func TestRunUnfinishedOutcomeStands(t *testing.T) {
	cases := map[string]struct {
		reason string
		then   string // answers to the later attempts
		tries  int
	}{
		"done":       {"the second attempt does what was left", "ok", 2},
		"never done": {"attempts are bounded", "503", walk.DefaultAttempts},
		"refused":    {"a refusal is final", "422", 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, pages := collection("a")
				tries := 0
				var ended []string
				report, err := walk.Run(t.Context(), pages, func(ctx context.Context, _ *bird) (godwit.Outcome, error) {
					if tries++; tries == 1 {
						return godwit.Migrated, &walk.UnfinishedError{Cause: play(ctx, "503")}
					}
					if err := play(ctx, tc.then); err != nil {
						return godwit.Skipped, &walk.UnfinishedError{Cause: err}
					}
					return godwit.Skipped, nil
				}, walk.Options{OnEnd: func(o walk.Object) { ended = append(ended, walk.Key(o)) }})
				if err != nil {
					t.Fatal(err)
				}
				if got := prose(report); got != "1 migrated; cursor a; complete" || tries != tc.tries {
					t.Errorf("%s: %s after %d attempts, want 1 migrated after %d", tc.reason, got, tries, tc.tries)
				}
				if diff := cmp.Diff([]string{"a"}, ended); diff != "" {
					t.Errorf("%s: objects that ended (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

func TestRunEndsWhenTheServerFails(t *testing.T) {
	many := func(n int, script string) []string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf("%s%05d: %s", "o", i, strings.ReplaceAll(script, "N", fmt.Sprint(i))))
		}
		return out
	}
	mixed := func(every string) []string {
		page := many(200, "503")
		for i := range page {
			if i%4 == 3 {
				page[i] = fmt.Sprintf("o%05d: %s", i, every)
			}
		}
		return page
	}
	cases := map[string]struct {
		reason string
		page   []string
		ends   bool
	}{
		"all are refused":                  {"the fault is not the objects'", many(5000, "refused"), true},
		"just fewer than the bound":        {"single objects may fail", many(walk.MaxExhausted-1, "503"), false},
		"every fourth is written":          {"the server works for some", mixed("ok"), false},
		"every fourth is skipped unsent":   {"a skipped object shows nothing about the server", mixed("skip"), true},
		"every fourth is refused for good": {"a 422 is an answer", mixed("422"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, pages := collection(strings.Join(tc.page, "|"))
				report, err := walk.Run(t.Context(), pages, s.rewrite, walk.Options{
					Limiter:  walk.NewLimiter(walk.Limits{MaxInFlight: 1}),
					Attempts: 1, // without waits the order, and so "in a row", is certain
				})
				if ended := err != nil; ended != tc.ends || report.Complete == tc.ends {
					t.Errorf("%s: error %v, complete %v; want an error: %v", tc.reason, err, report.Complete, tc.ends)
				}
				if _, transient := walk.Transient(err); tc.ends && !transient {
					t.Errorf("%s: the error hides its cause: %v", tc.reason, err)
				}
				// Another object may be begun in the moment of the stop.
				if over := report.Counts.Failed - walk.MaxExhausted; tc.ends && over != 0 && over != 1 {
					t.Errorf("%s: %d failed before the end, want %d", tc.reason, report.Counts.Failed, walk.MaxExhausted)
				}
			})
		})
	}
}

func TestRunEndsWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := make([]string, 5000)
		for i := range page {
			page[i] = fmt.Sprintf("o%04d: refused", i)
		}
		s, pages := collection(strings.Join(page, "|"))
		report, err := walk.Run(t.Context(), pages, s.rewrite, walk.Options{})
		if err == nil || report.Complete {
			t.Fatalf("Run returned %v, complete %v; want an error", err, report.Complete)
		}
		begun := 0
		for i := range page {
			if s.requested(fmt.Sprintf("o%04d", i)) > 0 {
				begun++
			}
		}
		if got := report.Counts.Total(); got != int64(begun) {
			t.Errorf("%d objects counted, %d begun", got, begun)
		}
		if most := walk.MaxParked + walk.DefaultMaxInFlight; begun > most+walk.MaxExhausted {
			t.Errorf("%d objects begun, want at most the %d that may wait and the %d that fail", begun, most, walk.MaxExhausted)
		}
		if got := report.Remaining; got != int64(5000-begun) {
			t.Errorf("Remaining = %d after %d of 5000 were begun", got, begun)
		}
	})
}
