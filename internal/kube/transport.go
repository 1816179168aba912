package kube

import (
	"context"
	"net/http"
	"sync/atomic"
)

type requestCountKey struct{}

// requestCount is a counter and the one around it.
type requestCount struct {
	n     *atomic.Int64
	outer *requestCount
}

// CountRequests returns a context in which every request of a [Client] increments n, and the counters that ctx already
// has.
func CountRequests(ctx context.Context, n *atomic.Int64) context.Context {
	outer, _ := ctx.Value(requestCountKey{}).(*requestCount)
	return context.WithValue(ctx, requestCountKey{}, &requestCount{n: n, outer: outer})
}

// meter counts requests.
type meter struct{ next http.RoundTripper }

func (m meter) RoundTrip(req *http.Request) (*http.Response, error) {
	count, _ := req.Context().Value(requestCountKey{}).(*requestCount)
	for ; count != nil; count = count.outer {
		count.n.Add(1)
	}
	return m.next.RoundTrip(req)
}
