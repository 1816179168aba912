package conformance

import (
	"context"
	"errors"
	"fmt"
)

// check is one rule of the contract.
type check struct {
	name CheckName
	// rule is what the check proves, in a sentence.
	rule string
	// needs are asked in this order; the first one that is not met decides.
	needs []need
	// run returns a note about how the provider passed, or why it did not.
	run func(ctx context.Context, e *environment) (note string, err error)
}

// prove runs a check in an environment of its own, if its needs are met.
func (c check) prove(ctx context.Context, k Kind, h Harness) (result Result) {
	if reason := k.Exempt[c.name]; reason != "" {
		return Result{State: DoesNotApply, Detail: reason}
	}
	e, err := newEnvironment(ctx, k, h)
	if err != nil {
		return Result{State: NotChecked, Detail: "could not be prepared: " + err.Error(), unprepared: true}
	}
	defer func() {
		if err := e.close(ctx); err != nil && result.State == Passed {
			result = Result{State: NotChecked, Detail: "could not be cleaned up: " + err.Error(), unprepared: true}
		}
	}()
	for _, need := range append([]need{needList}, c.needs...) {
		if state, cause := need(e); state != "" {
			return Result{State: state, Detail: cause}
		}
	}
	note, err := c.run(ctx, e)
	if err != nil && e.output != nil {
		err = fmt.Errorf("%w\nthe provider has printed: %s", err, e.output())
	}
	var unprepared *preparationError
	switch {
	case errors.As(err, &unprepared):
		return Result{State: NotChecked, Detail: "could not be prepared: " + err.Error(), unprepared: true}
	case err != nil:
		return Result{State: Failed, Detail: err.Error()}
	}
	return Result{State: Passed, Detail: note}
}
