package kube

import (
	"context"
	"io"
	"net/http"
	"time"
)

// WithLimit returns a context that is canceled after a time, without a deadline: a [walk.Limiter] treats an exceeded
// deadline as a server that does not answer, but not a cancellation.
func WithLimit(ctx context.Context, limit time.Duration, cause error) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(cause) })
	return ctx, func() { timer.Stop(); cancel(nil) }
}

// WithAnswerLimit limits the time for which each request of a [Client] waits for its answer. It
// starts when the request is sent, and not while the request waits in the limiter. Once an answer
// is late, cause is the cause of the returned context.
func WithAnswerLimit(ctx context.Context, limit time.Duration, cause error) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ctx = context.WithValue(ctx, answerLimitKey{}, &answerTimeout{limit, func() { cancel(cause) }})
	return ctx, func() { cancel(nil) }
}

type answerLimitKey struct{}

// answerTimeout ends a context when an answer is late.
type answerTimeout struct {
	limit time.Duration
	end   func()
}

// answerLimit applies the limits of [WithAnswerLimit]. It is below the limiter.
type answerLimit struct{ next http.RoundTripper }

func (a answerLimit) RoundTrip(req *http.Request) (*http.Response, error) {
	timeout, ok := req.Context().Value(answerLimitKey{}).(*answerTimeout)
	if !ok {
		return a.next.RoundTrip(req)
	}
	timer := time.AfterFunc(timeout.limit, timeout.end)
	resp, err := a.next.RoundTrip(req)
	if err != nil {
		timer.Stop()
		return nil, err
	}
	resp.Body = timedBody{resp.Body, timer}
	return resp, nil
}

// timedBody stops the timer when the answer is read.
type timedBody struct {
	io.ReadCloser
	timer *time.Timer
}

func (b timedBody) Close() error {
	b.timer.Stop()
	return b.ReadCloser.Close()
}
