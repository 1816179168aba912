package kube_test

import (
	"net/http"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/godwit-dev/godwit/internal/kube"
)

var flip = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestServerClock plays steps: the local clock moves to local, a response arrives
// with the date server (empty for none), and the clock shows want. All times are
// relative to flip.
func TestServerClock(t *testing.T) {
	type step struct {
		local  time.Duration
		server string
		want   time.Duration
	}
	date := func(d time.Duration) string { return flip.Add(d).Format(http.TimeFormat) }
	cases := map[string]struct {
		reason string
		steps  []step
	}{
		"nothing read": {
			reason: "without a response the clock shows the local time",
			steps:  []step{{3 * time.Second, "", 3 * time.Second}},
		},
		"the server is ahead": {
			reason: "the clock shows the server's time, and runs at the local pace",
			steps:  []step{{0, date(time.Hour), time.Hour}, {90 * time.Second, "", time.Hour + 90*time.Second}},
		},
		"the server is behind": {
			reason: "the first reading may set the clock back",
			steps:  []step{{0, date(-time.Hour), -time.Hour}, {time.Second, "", -time.Hour + time.Second}},
		},
		"half a second behind": {
			reason: "the first reading counts, however near it is to the local clock",
			steps:  []step{{500 * time.Millisecond, date(0), 0}},
		},
		"cut to the second": {
			reason: "the latest of many readings is the most exact; a reading that was cut more changes nothing",
			steps: []step{
				{900 * time.Millisecond, date(10 * time.Second), 10 * time.Second},
				{1100 * time.Millisecond, date(11 * time.Second), 11 * time.Second},
				{2000 * time.Millisecond, date(11 * time.Second), 11900 * time.Millisecond},
				{2099 * time.Millisecond, date(11 * time.Second), 11999 * time.Millisecond},
			},
		},
		"a slow response": {
			reason: "a date that is a little old does not set the clock back",
			steps:  []step{{0, date(0), 0}, {12 * time.Second, date(10 * time.Second), 12 * time.Second}},
		},
		"set back": {
			reason: "more than a second is no cut",
			steps:  []step{{0, date(0), 0}, {12 * time.Second, date(9 * time.Second), 9 * time.Second}, {13 * time.Second, date(10 * time.Second), 10 * time.Second}},
		},
		"set forward": {
			reason: "the clock follows at once",
			steps:  []step{{0, date(0), 0}, {time.Second, date(time.Minute), time.Minute}},
		},
		"garbage": {
			reason: "a date that can't be read changes nothing",
			steps:  []step{{0, date(time.Hour), time.Hour}, {0, "yesterday", time.Hour}, {0, "Thu, 01 Jan", time.Hour}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			local := clocktesting.NewFakePassiveClock(flip)
			c := kube.NewServerClock(local)
			for i, s := range tc.steps {
				local.SetTime(flip.Add(s.local))
				c.Read(s.server)
				if got := c.Now().Sub(flip); got != s.want {
					t.Errorf("%s\nstep %d: the clock shows flip + %s, want flip + %s", tc.reason, i+1, got, s.want)
				}
			}
		})
	}
}

// TestServerClockIsALowerBound, for any fraction of a second that a date lost and any
// duration of a response: a clock that is ahead would shorten the settle time.
func TestServerClockIsALowerBound(t *testing.T) {
	local := clocktesting.NewFakePassiveClock(flip)
	c := kube.NewServerClock(local)
	ahead := 7*time.Minute + 345*time.Millisecond
	for i := range 2000 {
		at := flip.Add(time.Duration(i) * 37 * time.Millisecond)
		took := time.Duration(i*7919%900) * time.Millisecond
		local.SetTime(at.Add(took))
		c.Read(at.Add(ahead).UTC().Format(http.TimeFormat))
		truth := at.Add(took + ahead)
		if got := c.Now(); got.After(truth) {
			t.Fatalf("reading %d: the clock shows %s, want at most %s", i, got, truth)
		} else if i > 1000 && truth.Sub(got) > 50*time.Millisecond {
			t.Fatalf("reading %d: the clock is %s behind, want at most 50ms after quick responses at the turn of a second", i, truth.Sub(got))
		}
	}
}
