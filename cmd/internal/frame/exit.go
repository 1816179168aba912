package frame

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Code is the exit code of the process.
type Code int

const (
	// OK means that the command did its work, or that nothing is left to do.
	OK Code = 0
	// Pending means that there is work or a difference, or that something is not proven.
	Pending Code = 1
	// Error means that the command could not do its work.
	Error Code = 2
	// Refused means that the command is blocked or refused, and wrote nothing.
	Refused Code = 3
	// Partial means that the command did a part of its work.
	Partial Code = 4
	// TimedOut means that --timeout ended the command. timeout(1) exits with the same code.
	TimedOut Code = 124
	// Interrupted means that a signal ended the command. Shells add 128 to the number of
	// the signal.
	Interrupted Code = 130
)

// precedence is the order of codes, the most important one first.
var precedence = []Code{Interrupted, TimedOut, Error, Partial, Refused, Pending, OK}

// Worst returns the most important code.
func Worst(codes ...Code) Code {
	worst := OK
	for _, c := range codes {
		if slices.Index(precedence, c) < slices.Index(precedence, worst) {
			worst = c
		}
	}
	return worst
}

// exitError ends a command with a code. If err is nil, the command has printed everything.
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

// Complete reports whether a command has done all its work, whatever its exit code.
func Complete(err error) bool {
	return err == nil || isPrinted(err)
}

// Exit returns an error with the code, and nil for OK.
func Exit(code Code) error {
	if code == OK {
		return nil
	}
	return &exitError{code: code}
}

// Refuse returns the error of a command that wrote nothing.
func Refuse(err error) error { return &exitError{Refused, err} }

// isPrinted reports whether the command has ended and printed everything.
func isPrinted(err error) bool {
	var exited *exitError
	return errors.As(err, &exited) && exited.err == nil
}

// usageError is an error of the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usagef formats an error of the command line.
func Usagef(format string, args ...any) error {
	return Usage(fmt.Errorf(format, args...))
}

// Usage marks an error as an error of the command line.
func Usage(err error) error { return &usageError{err} }

// errTimeout is the cause of a context that --timeout ended.
var errTimeout = errors.New("--timeout is over")

// ContextCode returns the exit code of a command whose context has ended, and OK if it has not.
func ContextCode(ctx context.Context) Code {
	switch {
	case ctx.Err() == nil:
		return OK
	case errors.Is(context.Cause(ctx), errTimeout):
		return TimedOut
	}
	return Interrupted
}
