package storageversion

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/managedfields"
	"github.com/godwit-dev/godwit/walk"
)

// crdReadError is the error of a failed read of a CRD: [decision.ErrNotFound] if the CRD does not exist.
func crdReadError(name string, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %s", decision.ErrNotFound, name)
	}
	return fmt.Errorf("read customresourcedefinition %s: %w", name, err)
}

// errStillListed means that a write answered 404 although the object exists. The write is tried again.
var errStillListed = errors.New("the write answered 404, but the object is listed")

// retry decides whether a write is tried again, and after which time: after each error that is transient,
// and after a conflict or [errStillListed], since the write changes nothing.
func retry(err error) (time.Duration, bool) {
	if errors.Is(err, errStillListed) || apierrors.IsConflict(err) {
		return 0, true
	}
	return apierror.Transient(err)
}

// cause names what makes a write fail if this is not the API server itself, such as a webhook: the writes
// of other objects may not meet it.
func cause(err error) string {
	if err == nil {
		return ""
	}
	if by := apierror.Of(err).Origin; by.Name != "" {
		return by.String()
	}
	if errors.Is(err, errStillListed) || apierrors.IsConflict(err) {
		return "writes by other clients"
	}
	return walk.CauseOf(err)
}

// FailureReason is the reason of the failure of one object.
func FailureReason(err error) *godwit.Reason {
	switch answer := apierror.Of(err); answer.Class {
	case apierror.Denied, apierror.NoDryRun:
		return decision.ReasonAdmissionDenied
	case apierror.WebhookUnavailable, apierror.ConversionUnavailable:
		return decision.ReasonWebhookUnavailable
	case apierror.ConversionFailed:
		return decision.ReasonConversionFailed
	case apierror.UnreadableObject:
		return decision.ReasonUnreadableObjects
	case apierror.KeyMissing:
		return decision.ReasonEncryptionKeyMissing
	case apierror.Forbidden:
		return decision.ReasonForbidden
	case apierror.NotFound:
		return decision.ReasonNotServed
	case apierror.Conflict:
		return decision.ReasonConflict
	case apierror.Throttled:
		return decision.ReasonThrottled
	case apierror.Timeout:
		return decision.ReasonTimeout
	case apierror.ServerError:
		return decision.ReasonServerError
	case apierror.Refused:
		return decision.ReasonObjectInvalid
	case apierror.TooLarge:
		return decision.ReasonObjectTooLarge
	case apierror.StorageFull:
		return decision.ReasonEtcdFull
	case apierror.Unauthorized:
		return decision.ReasonUnauthorized
	case apierror.Unknown:
		return ownReason(err)
	}
	return decision.ReasonFailed
}

// ownReason is the reason of a failure that is not an answer of the API server.
func ownReason(err error) *godwit.Reason {
	switch {
	case errors.Is(err, errStillListed):
		return decision.ReasonNotServed
	case errors.Is(err, decision.ErrOtherScope):
		return decision.ReasonOtherScope
	case errors.Is(err, managedfields.ErrDropped):
		return decision.ReasonObjectTooLarge
	case errors.Is(err, managedfields.ErrKept):
		return decision.ReasonManagedFieldsKept
	case errors.As(err, new(net.Error)), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return decision.ReasonUnanswered
	}
	return decision.ReasonFailed
}
