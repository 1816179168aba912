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
