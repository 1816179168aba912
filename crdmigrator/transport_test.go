package crdmigrator

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/godwit-dev/godwit/internal/kube"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestMeterCountsIntoEveryCounter(t *testing.T) {
	fault := errors.New("connection lost")
	cases := map[string]struct {
		reason string
		ctx    func(outer, inner *atomic.Int64) context.Context
		err    error
		want   [2]int64
	}{
		"none": {
			reason: "nobody asked",
			ctx:    func(_, _ *atomic.Int64) context.Context { return t.Context() },
		},
		"one": {
			reason: "a run",
			ctx:    func(outer, _ *atomic.Int64) context.Context { return CountRequests(t.Context(), outer) },
			want:   [2]int64{1, 0},
		},
		"nested": {
			reason: "a run within whatever counts around it",
			ctx: func(outer, inner *atomic.Int64) context.Context {
				return CountRequests(CountRequests(t.Context(), outer), inner)
			},
			want: [2]int64{1, 1},
		},
		"a request that fails": {
			reason: "it was sent",
			ctx:    func(outer, _ *atomic.Int64) context.Context { return CountRequests(t.Context(), outer) },
			err:    fault,
			want:   [2]int64{1, 0},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var outer, inner atomic.Int64
			local := clocktesting.NewFakePassiveClock(flip)
			m := meter{clock: kube.NewServerClock(local), next: roundTripper(func(*http.Request) (*http.Response, error) {
				if tc.err != nil {
					return nil, tc.err
				}
				return &http.Response{Header: http.Header{"Date": {flip.Add(time.Minute).Format(http.TimeFormat)}}}, nil
			})}
			req, err := http.NewRequestWithContext(tc.ctx(&outer, &inner), http.MethodGet, "http://server", strings.NewReader(""))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.RoundTrip(req); !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, [2]int64{outer.Load(), inner.Load()}); diff != "" {
				t.Errorf("%s\ncounts (-want +got):\n%s", tc.reason, diff)
			}
			if read := !m.clock.Now().Equal(flip); read != (tc.err == nil) {
				t.Errorf("the clock was read: %t; a response has a date, an error has none", read)
			}
		})
	}
}
