package apierror

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Treatment is how a caller handles a failed request.
type Treatment string

const (
	// Retry means that the same request may succeed within a minute, without a change by a user.
	Retry Treatment = "Retry"
	// Confirm means that the failure shows a missing permission or a missing kind, or an API server that has just
	// started. It is final only after the server has confirmed it: see the callers.
	Confirm Treatment = "Confirm"
	// EndsRun means that every request fails in the same way until a user changes something: a run ends at the first such
	// answer, and no object is to blame for it. A process that runs for long, such as a manager, tries again later: its
	// token is renewed.
	EndsRun Treatment = "EndsRun"
	// CallerDecides means that the answer alone is not enough for a decision. A walk does not retry the request; a
	// migration of clusters repeats it until its phase ends.
	CallerDecides Treatment = "CallerDecides"
	// Final means that the same request fails in the same way until a user changes something.
	Final Treatment = "Final"
)

// Row is a row of [Table].
type Row struct {
	// Failure describes the failed requests of the row.
	Failure string
	// Treatment is the treatment of these requests.
	Treatment Treatment
	// Why is the reason for the treatment.
	Why     string
	matches func(failure) bool
}

// Table has the treatment of each failed request, for all domains. The first matching row applies.
var Table = []Row{
	{"retries that have ended, a canceled request", CallerDecides, "the caller ended them", endsRetries},
	{"401: a webhook or a policy denies", Final, "admission chooses its code", both(reason(metav1.StatusReasonUnauthorized), matchesWords(webhookDenies, policyDenies))},
	{"401 Unauthorized", EndsRun, "each other request has the same credentials", reason(metav1.StatusReasonUnauthorized)},
	// Answers that only their message or their causes distinguish.
	{"StorageReadError", CallerDecides, "damaged bytes stay damaged, but a conversion webhook or a KMS plugin comes back", reason(metav1.StatusReasonStoreReadError)},
	{"500: the API server lacks an encryption key", CallerDecides, "it reads the object again once a user has put the key back", matchesWords(keyMissing)},
	{"500: etcd is out of space", EndsRun, "etcd takes no write before a user has freed space", matchesWords(storageFull)},
	{"500: the object is too large for etcd", Final, "a retry sends the same object", matchesWords(tooLarge)},
	{"403: admission is not ready", Retry, "the API server starts", forbidden(matchesWords(admissionStarts))},
	{"403: a quota has no count", Retry, "the quota controller counts", forbidden(matchesWords(quotaUncounted))},
	{"403: the namespace is being deleted", CallerDecides, "the deletion ends", forbidden(hasCause(corev1.NamespaceTerminatingCause))},
	{"403: the authorizer denies", Confirm, "an API server that starts has not read its roles; access reviews confirm a missing permission", forbidden(matchesWords(unauthorized, unauthorizedPath))},
	// Answers of API servers, and of proxies before them.
	{"Retry-After", Retry, "the server says when", asksForDelay},
	{"429 TooManyRequests", Retry, "the server is busy, or fills its watch cache", reason(metav1.StatusReasonTooManyRequests)},
	{"ServerTimeout, Timeout", Retry, "the server or etcd is slow", reason(metav1.StatusReasonServerTimeout, metav1.StatusReasonTimeout)},
	{"InternalError, ServiceUnavailable, any other 5xx", Retry, "a server restarts, etcd elects, a webhook or a proxy lacks its backend", serverFault},
	{"403: anything else", Final, "admission denies the request, or a proxy", reason(metav1.StatusReasonForbidden)},
	{"404 NotFound", CallerDecides, "the object is gone, or not there yet", reason(metav1.StatusReasonNotFound)},
	{"409 Conflict, AlreadyExists", CallerDecides, "another client was faster", reason(metav1.StatusReasonConflict, metav1.StatusReasonAlreadyExists)},
	{"410 Gone, Expired", CallerDecides, "a new list succeeds", reason(metav1.StatusReasonGone, metav1.StatusReasonExpired)},
	{"400 BadRequest, 422 Invalid", Final, "the object is not acceptable", reason(metav1.StatusReasonBadRequest, metav1.StatusReasonInvalid)},
	{"405 MethodNotAllowed, 406 NotAcceptable, 415 UnsupportedMediaType", Final, "the server has no such request", reason(metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonNotAcceptable, metav1.StatusReasonUnsupportedMediaType)},
	{"413 RequestEntityTooLarge", Final, "a retry sends the same object", reason(metav1.StatusReasonRequestEntityTooLarge)},
	{"3xx, any other 4xx", CallerDecides, "a proxy redirects, or wants something of its own", answered},
	// No answer.
	{"a kind that discovery does not list", Confirm, "an API server that starts does not list all CRDs", isNoMatch},
	{"no connection, or one that ends: DNS, TLS, refused, reset, EOF, timeout", Retry, "a server is about to start, or was stopped", transportFault},
	{"a body that is not an object, any other error", CallerDecides, "it says nothing about the next request", func(failure) bool { return true }},
}

// TreatmentOf returns the treatment of a failed request.
func TreatmentOf(err error) Treatment { return RowOf(err).Treatment }

// RowOf returns the row of [Table] that matches an error, or an empty row for nil.
func RowOf(err error) Row {
	if err == nil {
		return Row{}
	}
	f := failureOf(err)
	for _, row := range Table {
		if row.matches(f) {
			return row
		}
	}
	return Row{} // the last row matches every error
}

// Retried reports whether the treatment of an error is [Retry], and returns the Retry-After of the API server. It
// returns 0 without a Retry-After, and while the API server fills its watch cache: this often takes far less than the 1
// s in the header.
func Retried(err error) (time.Duration, bool) {
	if TreatmentOf(err) != Retry {
		return 0, false
	}
	seconds, _ := apierrors.SuggestsClientDelay(err)
	if FillsCache(Message(err)) {
		seconds = 0
	}
	return time.Duration(seconds) * time.Second, true
}
