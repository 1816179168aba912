package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Code is what the process exits with.
type Code int

const (
	// OK: nothing is left to do, or it was done.
	OK Code = 0
	// Pending: there is work, a difference, or something is not proven.
	Pending Code = 1
	// Error: a command could not do what it was asked.
	Error Code = 2
	// Refused: blocked or refused, and nothing was written.
	Refused Code = 3
	// Partial: some of it was done.
	Partial Code = 4
	// TimedOut: --timeout ended it; timeout(1) exits like this.
	TimedOut Code = 124
	// Interrupted: a signal ended it; shells use 128 and the signal's number.
	Interrupted Code = 130
)

// precedence orders the codes of several targets, the weightiest first.
var precedence = []Code{Interrupted, TimedOut, Error, Partial, Refused, Pending, OK}

// Worst is the code of a command that met several.
func Worst(codes ...Code) Code {
	heaviest := OK
	for _, c := range codes {
		if slices.Index(precedence, c) < slices.Index(precedence, heaviest) {
			heaviest = c
		}
	}
	return heaviest
}

// exitError ends a command with a code. Without an error everything has been
// said already.
type exitError struct {
	code Code
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// Exit is nil for OK, as a command's result has to be.
func Exit(code Code) error {
	if code == OK {
		return nil
	}
	return &exitError{code: code}
}

// Refuse ends a command before it wrote anything.
func Refuse(err error) error { return &exitError{Refused, err} }

// said: the command came to its end and printed what it had to print.
func said(err error) bool {
	var exited *exitError
	return errors.As(err, &exited) && exited.err == nil
}

// usageError is a command line that says nothing that can be done.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usagef is an error of the command line itself.
func Usagef(format string, args ...any) error {
	return Usage(fmt.Errorf(format, args...))
}

// Usage makes an error one of the command line itself.
func Usage(err error) error { return &usageError{err} }

// errTimeout is the cause of a context that --timeout has ended.
var errTimeout = errors.New("--timeout is over")

// Ended says with which code a context that is over ends a command; OK while
// it is not.
func Ended(ctx context.Context) Code {
	switch {
	case ctx.Err() == nil:
		return OK
	case errors.Is(context.Cause(ctx), errTimeout):
		return TimedOut
	}
	return Interrupted
}
