package walk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// DefaultAttempts bounds the tries for one object or page. With the delays
	// below, ten tries span 28 to 55 s: longer than an API server's restart,
	// short enough that a broken webhook is reported while the user still
	// watches the run.
	DefaultAttempts = 10

	firstDelay = 200 * time.Millisecond
	// maxDelay caps one wait, also one that a server asks for by Retry-After:
	// a server that is back earlier should not be left idle.
	maxDelay = 15 * time.Second
)

// Transient reports whether a fault may pass without a change, and how long the
// API server asked the client to wait. That is 0 when it did not ask, and while it
// fills its watch cache, which often takes far less than the 1 s that it asks for.
// Conflicts are not transient: only the action knows what a conflict means.
func Transient(err error) (time.Duration, bool) {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, ErrStopped) || errors.Is(err, ErrTooLate) || errors.As(err, new(*exhaustedError)) {
		return 0, false
	}
	if apierrors.IsStoreReadError(err) || tooLarge(err) { // 500s, but neither what etcd holds nor what it refuses changes by asking
		return 0, false
	}
	if _, ok := apiStatus(err); ok {
		seconds, suggested := apierrors.SuggestsClientDelay(err)
		delay := time.Duration(seconds) * time.Second
		if fillingCache(err) {
			delay = 0
		}
		switch {
		case suggested,
			apierrors.IsTooManyRequests(err),
			apierrors.IsInternalError(err),
			apierrors.IsServiceUnavailable(err),
			apierrors.IsTimeout(err),
			apierrors.IsServerTimeout(err):
			return delay, true
		}
		return 0, serverFault(err)
	}
	return 0, transportFault(err)
}

// serverFault recognizes the 5xx answers that carry no Kubernetes reason, such as
// a 502 of a load balancer in front of the API server.
func serverFault(err error) bool {
	status, ok := apiStatus(err)
	return ok && status.Status().Code >= 500
}

// cacheUnfilled is how an API server says, with a 429, that its watch cache for a resource is not filled yet.
const cacheUnfilled = "storage is (re)initializing"

// fillingCache recognizes an error with that message.
func fillingCache(err error) bool {
	status, ok := apiStatus(err)
	return ok && strings.Contains(status.Status().Message, cacheUnfilled)
}

// tooLarge recognizes an object that etcd refuses, or that the API server's etcd
// client does not send. The API server passes on their message without a reason.
func tooLarge(err error) bool {
	status, ok := apiStatus(err)
	if !ok {
		return false
	}
	message := status.Status().Message
	return strings.Contains(message, "etcdserver: request is too large") ||
		strings.Contains(message, "trying to send message larger than max")
}

func transportFault(err error) bool {
	var netErr net.Error
	var urlErr *url.Error
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err),
		utilnet.IsHTTP2ConnectionLost(err), utilnet.IsProbableEOF(err), streamReset(err):
		return true
	case errors.As(err, &netErr) && netErr.Timeout():
		return true
	case errors.As(err, &urlErr):
		// What net/http wraps is a failure to exchange bytes (GOAWAY, a
		// closed connection, a DNS hiccup); a certificate or a URL that is
		// wrong fails the first request, long before a walk starts.
		return true
	}
	return false
}

// streamReset recognizes a server that stopped in the middle of an answer, as an
// API server does with a list that outlasts its request timeout. It compares the
// error's text, as apimachinery does for such errors: the error has one type in
// net/http and another in x/net, which client-go uses.
func streamReset(err error) bool {
	return strings.Contains(err.Error(), "stream error: stream ID ")
}

func apiStatus(err error) (apierrors.APIStatus, bool) {
	var status apierrors.APIStatus
	ok := errors.As(err, &status)
	return status, ok
}

// backoff is the wait before the next attempt: exponential with full jitter on
// its upper half, never shorter than the server's hint.
func backoff(attempt int, hint time.Duration) time.Duration {
	d := firstDelay << min(attempt-1, 10)
	d = min(d, maxDelay)
	d = d/2 + rand.N(d/2)
	return min(max(d, hint), maxDelay)
}

// Wait returns nil after d, or the cause when the context ends before.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Retry calls f until it succeeds, fails with an error that is not [Transient], or
// the attempts are used up. It is for single requests: [Run] retries the errors
// that an action returns.
func Retry(ctx context.Context, attempts int, f func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		err := f(ctx)
		hint, again := Transient(err)
		if !again || attempt == attempts || ctx.Err() != nil {
			return err
		}
		if cause := Wait(ctx, backoff(attempt, hint)); cause != nil {
			return fmt.Errorf("%w while waiting to retry after: %w", cause, err)
		}
	}
}

// exhaustedError is the last error of a page whose attempts are used up. It
// is not transient: a Retry around the list would multiply the attempts.
type exhaustedError struct {
	attempts int
	err      error
}

func (e *exhaustedError) Error() string {
	return fmt.Sprintf("list a page, %d attempts: %v", e.attempts, e.err)
}

func (e *exhaustedError) Unwrap() error { return e.err }
