package apierror

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Class is the meaning of an answer.
type Class uint8

const (
	// Unknown is an error that is not an answer of an API server, such as a lost connection.
	Unknown Class = iota
	// Denied means that a webhook or a policy denies the request.
	Denied
	// NoDryRun means that a required webhook does not support dry runs.
	NoDryRun
	// WebhookUnavailable means that a required admission webhook does not answer.
	WebhookUnavailable
	// ConversionUnavailable means that the conversion webhook does not answer.
	ConversionUnavailable
	// ConversionFailed means that the conversion webhook answers, but does not convert.
	ConversionFailed
	// UnreadableObject means that the API server can't read an object from etcd.
	UnreadableObject
	// KeyMissing means that the API server lacks the key with which an object in etcd is encrypted.
	KeyMissing
	// Forbidden means that the authorizer denies the caller a permission.
	Forbidden
	// NotFound is a 404.
	NotFound
	// Conflict is a 409: the object has changed since it was read, or exists already.
	Conflict
	// Throttled is a 429.
	Throttled
	// Timeout means that the API server, or a proxy before it, timed out.
	Timeout
	// ServerError is any other 5xx.
	ServerError
	// Refused is any other 4xx: the request is not acceptable.
	Refused
	// Unauthorized is a 401: the API server does not accept the caller's credentials.
	Unauthorized
	// StorageFull means that etcd is out of space, and stores nothing.
	StorageFull
	// TooLarge means that the object is too large for etcd, or for the API server.
	TooLarge
)

// Answer is an API server's error response.
type Answer struct {
	Class Class
	// Origin is the webhook or policy that caused the answer; zero for the API server itself.
	Origin Origin
	// Message is the API server's sentence, without what callers put before it.
	Message string
	// Cause is the part of Message that comes from Origin, or the whole Message if no part does.
	Cause string
	// User lacks Permission; both are set if Class is Forbidden.
	User       string
	Permission Permission
	// StoredVersion is the version at which etcd holds an object that could not be
	// converted; empty if the answer does not name one.
	StoredVersion string
	// Key is the key in etcd of an object that could not be read; empty if the answer does not name one.
	Key string
}

// Permission is a permission that an authorizer has denied: a verb on a resource, or on a path.
type Permission struct {
	Verb, Group string
	// Resource has its subresource after a slash, if there is one.
	Resource  string
	Namespace string
	// Name is the name of the object, if the request was about one. It can't be parsed from the message alone.
	Name string
	// Path is set for a request without a resource, such as discovery.
	Path string
}

// Of classifies an error.
func Of(err error) Answer {
	if err == nil {
		return Answer{}
	}
	a := Parse(code(err), err.Error())
	if conversion := a.Class == ConversionFailed || a.Class == ConversionUnavailable; !conversion {
		a.Message = Message(err)
	}
	if status := failureOf(err).status; a.Class == Forbidden && status != nil && status.Details != nil {
		a.Permission.Name = status.Details.Name
	}
	if m := keyInEtcd.FindStringSubmatch(a.Message); m != nil {
		a.Key = m[1]
	}
	switch {
	case a.Origin != Origin{}, a.Class == Forbidden, a.Class == KeyMissing:
		return a
	case apierrors.IsStoreReadError(err), versionGone.MatchString(a.Message):
		// Without the feature gate AllowUnsafeMalformedObjectDeletion, which is off by default before Kubernetes 1.37,
		// only the text shows this class, and it does not name the object.
		a.Class = UnreadableObject
		if m := versionGone.FindStringSubmatch(a.Message); m != nil {
			a.StoredVersion = m[1]
		}
	case apierrors.IsTimeout(err):
		a.Class = Timeout
	case apierrors.IsUnauthorized(err):
		a.Class = Unauthorized
	}
	a.Cause = a.Message
	return a
}

// Parse classifies an answer by its status code and its text. The code 0 means that the code
// is not known.
func Parse(code int32, text string) Answer {
	a := parse(text)
	a.Message = cmp.Or(a.Message, text)
	if a.Class != Unknown {
		if a.Origin == (Origin{}) {
			a.Cause = text
		}
		return a
	}
	a.Cause, a.Class = text, classOf(code)
	return a
}

func classOf(code int32) Class {
	switch {
	case code == http.StatusUnauthorized:
		return Unauthorized
	case code == http.StatusRequestEntityTooLarge:
		return TooLarge
	case code == http.StatusNotFound:
		return NotFound
	case code == http.StatusConflict:
		return Conflict
	case code == http.StatusTooManyRequests:
		return Throttled
	case code == http.StatusGatewayTimeout:
		return Timeout
	case code >= http.StatusInternalServerError:
		return ServerError
	case code >= http.StatusBadRequest:
		return Refused
	}
	return Unknown
}

// Message is the API server's sentence, without what callers put before it.
func Message(err error) string {
	if status := failureOf(err).status; status != nil {
		return cmp.Or(status.Message, fmt.Sprintf("status code %d", status.Code))
	}
	return err.Error()
}

// IsAnswer reports whether an error is an answer of an API server, or of a proxy before it.
func IsAnswer(err error) bool { return failureOf(err).status != nil }

func code(err error) int32 {
	if status := failureOf(err).status; status != nil {
		return status.Code
	}
	return 0
}

// Transient is like [Retried], and also returns true for a failed conversion: a conversion webhook works again after
// its rollout. The API server uses the same reason for objects that it can never read.
func Transient(err error) (time.Duration, bool) {
	if apierrors.IsStoreReadError(err) && Of(err).Origin.Kind == Conversion {
		return 0, true
	}
	return Retried(err)
}

// RetryForbidden converts an authorizer's 403 to a 503, which is retried. An API server answers 403 for a moment after
// its start, until it has read its roles. Use RetryForbidden only if the caller had the permission before. It does not
// change refusals by admission, which have the same code and reason but another message.
func RetryForbidden(err error) error {
	if IsAnswer(err) && TreatmentOf(err) == Confirm {
		return apierrors.NewServiceUnavailable(err.Error())
	}
	return err
}

// IsForbidden reports whether an error of any type contains the authorizer's message.
func IsForbidden(err error) bool { return err != nil && unauthorized.MatchString(err.Error()) }

// IsUntyped reports whether the API server refuses server-side apply because the stored object does not follow its
// schema. A patch still works.
func IsUntyped(err error) bool {
	return code(err) == http.StatusInternalServerError && typedFails.MatchString(err.Error())
}

// IsEndOfRun reports whether every other request fails in the same way until a user changes something.
func IsEndOfRun(err error) bool { return TreatmentOf(err) == EndsRun }

// IsConflictOrNotFound reports whether an object has changed or was deleted since it was read.
func IsConflictOrNotFound(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}

// IsRefusal reports whether the API server refused a request finally: a retry does not help.
func IsRefusal(err error) bool {
	if TreatmentOf(err) == Retry || IsConflictOrNotFound(err) {
		return false
	}
	c := code(err)
	return c >= http.StatusBadRequest && c < http.StatusInternalServerError
}

// Kinds of an [Origin], beside those of policies.
const (
	Webhook    = "webhook"
	Conversion = "conversion"
)

// Origin is the webhook or policy that an answer names.
type Origin struct {
	// Kind is Webhook, Conversion, or the kind of a policy.
	Kind string
	// Name is the name of the webhook or policy; for a conversion, the kind of object.
	Name string
	// Binding is the binding of a policy.
	Binding string
}

func (o Origin) String() string {
	switch {
	case o.Kind == Webhook:
		return "webhook " + o.Name
	case o.Binding != "":
		return fmt.Sprintf("%s %s (binding %s)", o.Kind, o.Name, o.Binding)
	}
	return o.Kind + " " + o.Name
}
