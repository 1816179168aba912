package apierror

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// failure is a request that failed.
type failure struct {
	err error
	// status is the answer of an API server, or the client's conversion of a proxy's answer; nil without an answer.
	status *metav1.Status
}

func failureOf(err error) failure {
	f := failure{err: err}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		s := status.Status()
		f.status = &s
	}
	return f
}

// RetriesEnded is implemented by errors that end retries, regardless of the error that they wrap.
type RetriesEnded interface {
	error
	RetriesEnded()
}

func endsRetries(f failure) bool {
	var end RetriesEnded
	return errors.As(f.err, &end) || errors.Is(f.err, context.Canceled)
}

// answered matches every error response.
func answered(f failure) bool { return f.status != nil }

// reasons has the reason for each status code that only one reason uses.
var reasons = map[int32]metav1.StatusReason{
	http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
	http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed: metav1.StatusReasonMethodNotAllowed, http.StatusNotAcceptable: metav1.StatusReasonNotAcceptable,
	http.StatusConflict: metav1.StatusReasonConflict, http.StatusGone: metav1.StatusReasonGone,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge, http.StatusUnsupportedMediaType: metav1.StatusReasonUnsupportedMediaType,
	http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
}

// reason matches an answer by its reason, or by its code if it has no reason.
func reason(all ...metav1.StatusReason) func(failure) bool {
	return func(f failure) bool {
		if f.status == nil {
			return false
		}
		is := f.status.Reason
		switch {
		case f.status.Code == http.StatusTooManyRequests: // a webhook may add any reason
			is = metav1.StatusReasonTooManyRequests
		case is == metav1.StatusReasonUnknown:
			is = reasons[f.status.Code]
		}
		return slices.Contains(all, is)
	}
}

// matchesWords matches the message of an answer.
func matchesWords(words ...*regexp.Regexp) func(failure) bool {
	return func(f failure) bool {
		return f.status != nil && slices.ContainsFunc(words, func(w *regexp.Regexp) bool { return w.MatchString(f.status.Message) })
	}
}

func hasCause(kind metav1.CauseType) func(failure) bool {
	return func(f failure) bool { return apierrors.HasStatusCause(f.err, kind) }
}

func both(one, two func(failure) bool) func(failure) bool {
	return func(f failure) bool { return one(f) && two(f) }
}

// forbidden matches a 403 with a further property.
func forbidden(and func(failure) bool) func(failure) bool {
	return both(reason(metav1.StatusReasonForbidden), and)
}

func asksForDelay(f failure) bool {
	_, asks := apierrors.SuggestsClientDelay(f.err)
	return asks
}

// serverFault matches a 5xx, even without a reason, such as a 502 of a load balancer in front of the API server.
func serverFault(f failure) bool {
	return reason(metav1.StatusReasonInternalError, metav1.StatusReasonServiceUnavailable)(f) || f.status != nil && f.status.Code >= http.StatusInternalServerError
}

func isNoMatch(f failure) bool { return meta.IsNoMatchError(f.err) }

// transportFault matches a network failure.
func transportFault(f failure) bool {
	var netErr net.Error
	var urlErr *url.Error
	switch err := f.err; {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err),
		utilnet.IsHTTP2ConnectionLost(err), utilnet.IsProbableEOF(err), streamReset(err):
		return true
	case errors.As(err, &netErr) && netErr.Timeout():
		return true
	case errors.As(err, &urlErr):
		// net/http wraps network failures (GOAWAY, a closed connection, a DNS error). It also wraps a wrong certificate
		// or URL, but these fail the first request, long before a walk starts.
		return true
	}
	return false
}

// streamReset matches a server that stopped in the middle of a response, as an API server does when a list exceeds its
// request timeout. It compares the error's text, as apimachinery does, because the error has one type in net/http and
// another in x/net, which client-go uses.
func streamReset(err error) bool {
	return strings.Contains(err.Error(), "stream error: stream ID ")
}
