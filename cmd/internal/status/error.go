package status

import "errors"

// Error is an error that has a Summary of its own. A retry soon would end in the same way.
type Error struct{ Summary Summary }

func (e *Error) Error() string { return e.Summary.Reason + ": " + e.Summary.Message }

// NewStalledError returns an error after which user action is required.
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
