package walk_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-dev/godwit/walk"
)

// TestSendBy: a write whose turn comes after the time that was set is not sent, and
// is no sign of strain. A write that was sent may take any time.
func TestSendBy(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		limits walk.Limits
		crowd  int // writes that are under way or have just been sent
		answer time.Duration
		want   error
		after  time.Duration
	}{
		"at once":               {"no request is before it", walk.Limits{}, 0, 0, nil, 0},
		"behind the rate":       {"its turn would be in 10 s", walk.Limits{MaxWritesPerSecond: 0.1}, 1, 0, walk.ErrTooLate, 0},
		"behind another":        {"the only slot is taken for a minute", walk.Limits{MaxInFlight: 1}, 1, time.Minute, walk.ErrTooLate, 5 * time.Second},
		"its answer takes long": {"it was sent in time", walk.Limits{}, 0, time.Minute, nil, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := walk.NewLimiter(test.limits)
				rt := l.RoundTripper(newWire(after(test.answer)))
				var crowd sync.WaitGroup
				for range test.crowd {
					crowd.Go(func() { _ = send(t.Context(), rt, http.MethodDelete, "other") })
				}
				defer crowd.Wait()
				synctest.Wait()
				_, before := l.InFlight()
				began := time.Now()
				err := send(walk.SendBy(t.Context(), began.Add(5*time.Second)), rt, http.MethodDelete, "late")
				if !errors.Is(err, test.want) || time.Since(began) != test.after {
					t.Errorf("%v after %s, want %v after %s: %s", err, time.Since(began), test.want, test.after, test.reason)
				}
				if _, transient := walk.Transient(err); transient {
					t.Error("the error is transient, but a retry would be as late")
				}
				if _, allowed := l.InFlight(); test.want != nil && allowed < before {
					t.Errorf("%d may be in flight, %d before: a request that was not sent is no sign of strain", allowed, before)
				}
			})
		})
	}
}
