package conformance

import (
	"context"
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/wait"
)

// attemptsToReport is more than a provider needs to report an error.
const attemptsToReport = 5

// awaitReported waits until the object reports the error, or the provider has ignored it in that many attempts.
func (e *environment) awaitReported(ctx context.Context, o *unstructured.Unstructured, op Operation, answer string, attempts int) error {
	before := e.calls.count(op)
	return wait.Until(ctx, e.harness.Timeout, func() (bool, error) {
		n := e.calls.count(op) - before
		live, err := e.get(ctx, o)
		if err != nil || refused(live) {
			return err == nil, err
		}
		err = fmt.Errorf("the external system has answered %s %s %d times, and the object is: %s", op, answer, n, describe(live))
		if n >= attempts {
			err = &wait.FinalError{Err: err}
		}
		return false, err
	})
}

// conflictIsReported: the external system answers each call with its conflict for a while.
func conflictIsReported(ctx context.Context, e *environment) (string, error) {
	o, _, err := e.createBound(ctx)
	if err != nil {
		return "", err
	}
	ops := []Operation{Read}
	if e.kind.Change != "" {
		ops = append(ops, Update)
	}
	for _, op := range append(ops, Delete) {
		e.calls.always(Fault{Answer: Conflict}, op)
		switch op {
		case Update:
			err = e.patch(ctx, o, e.kind.Change)
		case Delete:
			err = e.delete(ctx, o)
		}
		if err != nil {
			return "", asPreparationError(err)
		}
		if err := e.awaitReported(ctx, o, op, "with a conflict", attemptsToReport); err != nil {
			return "", err
		}
		e.calls.intercept(nil)
		if op == Delete {
			return fmt.Sprint(append(ops, Delete)), e.awaitGone(ctx, o)
		}
		if _, _, err := e.awaitBound(ctx, o); err != nil {
			return "", fmt.Errorf("after the conflict of %s: %w", op, err)
		}
	}
	return "", nil
}

// readErrors are the answers to a read that say nothing about the external resource: it is not allowed, the external
// system is broken, and there is no answer.
var readErrors = []Answer{Refused, ServerError, Dropped}

// readErrorsAreReported: while each read fails, the external resource may exist.
func readErrorsAreReported(ctx context.Context, e *environment) (string, error) {
	o, name, err := e.createBound(ctx)
	if err != nil {
		return "", err
	}
	creates := e.calls.count(Create)
	for _, answer := range readErrors {
		e.calls.always(Fault{Answer: answer}, Read, Search)
		attempts := attemptsToReport
		if answer == Dropped {
			attempts = math.MaxInt // An HTTP client repeats such a call by itself.
		}
		if err := e.awaitReported(ctx, o, Read, string(answer), attempts); err != nil {
			return "", err
		}
		err := e.checkWhileQuiet(ctx, func() error {
			if n := e.calls.count(Create) - creates; n > 0 {
				return fmt.Errorf("the provider has called Create %d times: it takes a read that was answered %s for a missing external resource", n, answer)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
		e.calls.intercept(nil)
		if _, _, err := e.awaitBound(ctx, o); err != nil {
			return "", fmt.Errorf("after reads that were answered %s: %w", answer, err)
		}
	}
	e.calls.always(Fault{Answer: Refused}, Read, Search)
	if err := e.delete(ctx, o); err != nil {
		return "", asPreparationError(err)
	}
	err = e.checkWhileQuiet(ctx, func() error {
		if _, err := e.get(ctx, o); err != nil {
			return fmt.Errorf("the object is gone, while each read was answered %s, and external resource %q is left behind: %w", Refused, name, err)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	e.calls.intercept(nil)
	if err := e.awaitGone(ctx, o); err != nil {
		return "", fmt.Errorf("after reads are answered again: %w", err)
	}
	return fmt.Sprint(readErrors), e.checkCreated(ctx, 0)
}
