package status

import "errors"

// Error is an error with a Summary. An immediate retry would fail in the same way.
type Error struct{ Summary Summary }

func (e *Error) Error() string { return e.Summary.Reason + ": " + e.Summary.Message }

// NewStalledError returns an error that requires user action.
func NewStalledError(reason, message string) error {
	return &Error{Summary{State: StateStalled, Reason: reason, Message: message}}
}

// FromError returns the Summary of an error that has one.
func FromError(err error) (s Summary, found bool) {
	var e *Error
	if !errors.As(err, &e) {
		return Summary{}, false
	}
	return e.Summary, true
}
