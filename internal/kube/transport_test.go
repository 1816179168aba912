package kube_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestRequestsCountIntoEveryCounter(t *testing.T) {
	fault := errors.New("connection lost")
	cases := map[string]struct {
		reason string
		ctx    func(outer, inner *atomic.Int64) context.Context
		err    error
		want   [2]int64
	}{
		"none": {
			reason: "no counter in the context",
			ctx:    func(_, _ *atomic.Int64) context.Context { return t.Context() },
		},
		"one": {
			reason: "a run",
			ctx:    func(outer, _ *atomic.Int64) context.Context { return kube.CountRequests(t.Context(), outer) },
			want:   [2]int64{1, 0},
		},
		"nested": {
			reason: "a run within a caller that counts as well",
			ctx: func(outer, inner *atomic.Int64) context.Context {
				return kube.CountRequests(kube.CountRequests(t.Context(), outer), inner)
			},
			want: [2]int64{1, 1},
		},
		"a request that fails": {
			reason: "it was sent",
			ctx:    func(outer, _ *atomic.Int64) context.Context { return kube.CountRequests(t.Context(), outer) },
			err:    fault,
			want:   [2]int64{1, 0},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var outer, inner atomic.Int64
			cfg := &rest.Config{Host: "http://server", Transport: roundTripper(func(*http.Request) (*http.Response, error) {
				if tc.err != nil {
					return nil, tc.err
				}
				return &http.Response{
					StatusCode: http.StatusOK, Body: http.NoBody,
					Header: http.Header{"Date": {flip.Add(time.Minute).Format(http.TimeFormat)}},
				}, nil
			})}
			c, err := kube.NewClient(cfg, walk.NewLimiter(walk.Limits{}), clocktesting.NewFakePassiveClock(flip))
			if err != nil {
				t.Fatal(err)
			}
			if err := kube.Do(tc.ctx(&outer, &inner), c.Get().AbsPath("/version")).Error(); !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, [2]int64{outer.Load(), inner.Load()}); diff != "" {
				t.Errorf("%s\ncounts (-want +got):\n%s", tc.reason, diff)
			}
			if read := !c.Clock.Now().Equal(flip); read != (tc.err == nil) {
				t.Errorf("clock set by the response: %t, want %t", read, tc.err == nil)
			}
		})
	}
}
