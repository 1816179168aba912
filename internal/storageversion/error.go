package storageversion

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/storageversion/managedfields"
	"github.com/godwit-dev/godwit/walk"
)

// ErrConflicts reports a complete pass that left objects alone because others
// wrote them at the same moment. Nothing was trimmed; another pass finds most of
// them written.
var ErrConflicts = errors.New("objects were written by others at the same moment")

// ErrChanged reports that a CRD is no longer as it was planned for: its
// spec changed in a way that voids the evidence, it is being deleted, or a
// write to its status came in between. Observe and plan again.
var ErrChanged = errors.New("the customresourcedefinition changed")

// ErrOutOfScope is what an [Options].BeforePage returns to end a run that is not wanted any
// more. The run writes nothing else then, not even its checkpoint.
var ErrOutOfScope = errors.New("the customresourcedefinition left the scope")

// ErrNotFound reports a CustomResourceDefinition that does not exist.
var ErrNotFound = errors.New("no such customresourcedefinition")

// notFound is how a CRD that does not exist is reported.
func notFound(name string, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	return fmt.Errorf("read customresourcedefinition %s: %w", name, err)
}

// BlockedError reports a plan that must not be run.
type BlockedError struct {
	CRD      string
	Blockers []godwit.Finding
}

func (e *BlockedError) Error() string {
	messages := make([]string, len(e.Blockers))
	for i, b := range e.Blockers {
		messages[i] = b.Line() + "; " + b.Fix.String()
	}
	return fmt.Sprintf("%s is blocked: %s", e.CRD, strings.Join(messages, "; "))
}

// NotSettledError reports that nothing may be written yet. A control loop requeues
// after Wait. Another caller runs again at Until, or better every few seconds: only
// a read of the leases shows that one became stale meanwhile.
type NotSettledError struct {
	// Until is the API server's time before which nothing is written. Where Servers are waited
	// for, it is when they renew their leases next.
	Until time.Time
	// Wait is how long that is from now, by the API server's clock.
	Wait time.Duration
	// Servers have not adopted the storage version as far as their leases show.
	Servers []Server
	// Stale are those of them whose lease is stale.
	Stale []Server
}

func (e *NotSettledError) Error() string {
	switch {
	case len(e.Stale) > 0:
		return fmt.Sprintf("not settled: API server %s has a stale lease and may still write the old version", join(e.Stale))
	case len(e.Servers) > 0:
		return fmt.Sprintf("not settled: API server %s has not shown yet that it adopted the storage version", join(e.Servers))
	}
	return fmt.Sprintf("not settled: requests begun before the storage version changed may still be under way for %s",
		max(e.Wait.Round(time.Second), time.Second))
}

func join(servers []Server) string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.String()
	}
	return strings.Join(names, ", ")
}

// errStillThere asks for another attempt.
var errStillThere = errors.New("the write answered 404, but the object is listed")

// retry is apierror.Transient and the two answers that only mean "again" for a write
// that changes nothing.
func retry(err error) (time.Duration, bool) {
	if errors.Is(err, errStillThere) || apierrors.IsConflict(err) {
		return 0, true
	}
	return apierror.Transient(err)
}

// cause names what a write fails for where that is not the API server: others of
// its objects may never meet it.
func cause(err error) string {
	if err == nil {
		return ""
	}
	if by := apierror.Of(err).Origin; by.Name != "" {
		return by.String()
	}
	if errors.Is(err, errStillThere) || apierrors.IsConflict(err) {
		return "writes by other clients"
	}
	return walk.CauseOf(err)
}

// causesOf names the webhooks and policies that failures come from, each once and
// sorted, as far as the API server's words tell.
func causesOf(failures []godwit.Failure) []string {
	var names []string
	for _, f := range failures {
		if by := apierror.Parse(0, f.Message).Origin; by.Name != "" {
			names = append(names, by.String())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// FailureReason is the reason of the failure of one object.
func FailureReason(err error) *godwit.Reason {
	switch answer := apierror.Of(err); answer.Class {
	case apierror.Denied, apierror.NoDryRun:
		return ReasonAdmissionDenied
	case apierror.WebhookUnavailable, apierror.ConversionUnavailable:
		return ReasonWebhookUnavailable
	case apierror.ConversionFailed:
		return ReasonConversionFailed
	case apierror.UnreadableObject:
		return ReasonUnreadableObjects
	case apierror.Forbidden:
		return ReasonForbidden
	case apierror.NotFound:
		return ReasonNotServed
	case apierror.Conflict:
		return ReasonConflict
	case apierror.Throttled:
		return ReasonThrottled
	case apierror.Timeout:
		return ReasonTimeout
	case apierror.ServerError:
		return ReasonServerError
	case apierror.Refused:
		return ReasonObjectInvalid
	case apierror.Unknown:
		return ownReason(err)
	}
	return ReasonFailed
}

// ownReason is the reason of a failure that is no answer of the API server.
func ownReason(err error) *godwit.Reason {
	switch {
	case errors.Is(err, errStillThere):
		return ReasonNotServed
	case errors.Is(err, managedfields.ErrDropped):
		return ReasonObjectTooLarge
	case errors.Is(err, managedfields.ErrKept):
		return ReasonManagedFieldsKept
	case errors.As(err, new(net.Error)), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return ReasonUnanswered
	}
	return ReasonFailed
}
