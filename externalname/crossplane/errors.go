package crossplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
)

// Errors of the functions of an [External]. They tell the reconciler what an answer of the external system means, and
// can be wrapped.
var (
	// ErrNotFound means that the external resource does not exist.
	ErrNotFound = errors.New("external resource not found")
	// ErrParentNotFound means that the parent of the external resource does not exist or can't be read. The resource
	// itself may exist, so the error is never handled like ErrNotFound.
	ErrParentNotFound = errors.New("parent of the external resource not found")
	// ErrAlreadyExists means that the external system refuses to create the resource because it exists already.
	ErrAlreadyExists = errors.New("external resource already exists")
	// ErrOutcomeUnknown means that a request without an answer may have been carried out. The reconciler treats network
	// errors of Create as this error.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrOperationNotFound means that the external system does not know an operation.
	ErrOperationNotFound = errors.New("operation not found")
	// ErrOperationRunning means that an operation has not ended.
	ErrOperationRunning = errors.New("operation is running")
	// ErrOperationFailed means that an operation has ended and has created nothing.
	ErrOperationFailed = errors.New("operation failed")
)

// MultipleMatchesError means that a key or a lookup matches several external resources. None of them may be written.
// Get and Find may return it.
type MultipleMatchesError struct {
	// Names are the external names of the matches.
	Names []string
}

func (e *MultipleMatchesError) Error() string {
	return fmt.Sprintf("%d external resources match: %s", len(e.Names), list(e.Names))
}

// AdoptionRefusedError means that a creation was interrupted, and that external resources match, but none is proven to
// come from it.
type AdoptionRefusedError struct {
	// Names are the external names of the matches.
	Names []string
}

func (e *AdoptionRefusedError) Error() string {
	return "outcome of the last creation is unknown, and no external resource that matches is proven to come from it: " + list(e.Names)
}

// listNames bounds the names in an error, which is written to a condition.
const listNames = 5

func list(names []string) string {
	if len(names) > listNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:listNames], ", "), len(names)-listNames)
	}
	return strings.Join(names, ", ")
}

// SharedNameError means that the deletion of an object is refused, because other objects have its external name: their external
// resource would be deleted, and they would create it anew.
type SharedNameError struct {
	// Name is the external name.
	Name string
	// Others are the other objects, as NAMESPACE/NAME.
	Others []string
}

func (e *SharedNameError) Error() string {
	return fmt.Sprintf("the external resource %q is not deleted, since other objects have its name: %s", e.Name, list(e.Others))
}

// NameChangedError means that the external name was changed or removed, that no external
// resource has the new name, and that the one with the old name still exists.
type NameChangedError struct {
	// Name is the new name; empty means that it was removed.
	Name string
	// Bound is the name of the external resource that exists.
	Bound string
}

func (e *NameChangedError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("external name was removed, but external resource %q still exists", e.Bound)
	}
	return fmt.Sprintf("external name was changed to %q, which does not exist, but external resource %q still exists", e.Name, e.Bound)
}

// NeverFoundError means that an external name has not identified a resource yet, and that
// the kind does not create a resource in place of a missing import.
type NeverFoundError struct{ Name string }

func (e *NeverFoundError) Error() string {
	return fmt.Sprintf("external resource %q was not found, now or before", e.Name)
}

// IdentityChangedError means that the key in the spec differs in a segment that can't change during the life of an
// external resource.
type IdentityChangedError struct {
	Segment    string
	Name, Want string
}

func (e *IdentityChangedError) Error() string {
	return fmt.Sprintf("segment %q of the key can't change: the external resource is %q, the spec asks for %q. "+
		"Restore the field of spec.forProvider, or create another object", e.Segment, e.Name, e.Want)
}

var (
	errMissing = errors.New("external resource does not exist, and spec.managementPolicies does not allow Create. " +
		"Correct the external name, or add Create to the policies")
	errUnknownOutcome = fmt.Errorf("create: %w", ErrOutcomeUnknown)
)

// remedyError adds a remedy to an error.
type remedyError struct {
	err    error
	remedy string
}

func (e *remedyError) Error() string { return e.err.Error() + ". " + e.remedy }
func (e *remedyError) Unwrap() error { return e.err }

// conflictError hides a Kubernetes conflict of the external system from crossplane-runtime, which would requeue the
// object without reporting it.
type conflictError struct{ err error }

func (e *conflictError) Error() string { return e.err.Error() }

// Is makes errors.Is work. An Unwrap method would let errors.As find the conflict.
func (e *conflictError) Is(target error) bool { return errors.Is(e.err, target) }

// longError is an error whose text is too long for a condition: an external system may answer
// with a page of HTML, or worse.
type longError struct{ err error }

func (e *longError) Error() string { return clip(e.err.Error()) }
func (e *longError) Unwrap() error { return e.err }

// textBytes bounds the text of the external system in a condition or an event.
const textBytes = 1000

func clip(text string) string {
	if len(text) <= textBytes {
		return text
	}
	return strings.ToValidUTF8(text[:textBytes], "") + "…"
}

// external converts an error of the external system for crossplane-runtime.
func external(err error) error {
	if err != nil && len(err.Error()) > textBytes {
		err = &longError{err: err}
	}
	if kerrors.IsConflict(err) {
		return &conflictError{err: err}
	}
	return err
}

// outcomeUnknown reports whether a request may have been carried out despite its error. It was not if the connection
// was never established.
func outcomeUnknown(err error) bool {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	for _, lost := range []error{ErrOutcomeUnknown, context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, lost) {
			return true
		}
	}
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
