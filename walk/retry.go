package walk

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// DefaultAttempts bounds the tries for one object or page. With the delays
	// below, ten tries span about a minute: longer than an API server's
	// restart, short enough that a broken webhook is reported while the person
	// who can mend it is still looking.
	DefaultAttempts = 10

	firstDelay = 200 * time.Millisecond
	// maxDelay caps one wait, also one that a server asks for by Retry-After:
	// a server that is back earlier should not be left idle.
	maxDelay = 15 * time.Second
)

// Transient reports whether a fault may cure itself, and how long the server
// asked to wait (0 when it did not say). Conflicts are not transient: only the
// action knows what a conflict means.
func Transient(err error) (time.Duration, bool) {
	if err == nil || errors.Is(err, context.Canceled) {
		return 0, false
	}
	if _, ok := apiStatus(err); ok {
		seconds, suggested := apierrors.SuggestsClientDelay(err)
		delay := time.Duration(seconds) * time.Second
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

// serverFault catches the 5xx answers that carry no Kubernetes reason, such as
// a 502 of a load balancer in front of the API server.
func serverFault(err error) bool {
	status, ok := apiStatus(err)
	return ok && status.Status().Code >= 500
}

func transportFault(err error) bool {
	var netErr net.Error
	var urlErr *url.Error
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err),
		utilnet.IsHTTP2ConnectionLost(err), utilnet.IsProbableEOF(err):
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
	d = d/2 + rand.N(d/2) //nolint:gosec // jitter needs no cryptographic randomness
	return min(max(d, hint), maxDelay)
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
