package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Run runs the checks, logs the table, and reports an error to the test for each check that
// failed, or that could not be prepared although nothing that it needs is missing.
func Run(t *testing.T, k Kind, h Harness) Report {
	t.Helper()
	report, err := Prove(t.Context(), k, h)
	if err != nil {
		t.Fatal(err)
	}
	logReport(t, report)
	return report
}

func logReport(t *testing.T, report Report) {
	t.Helper()
	var table strings.Builder
	if err := report.Write(&table); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	for _, result := range report.Results {
		if result.State == Failed || result.unprepared {
			t.Errorf("%s: %s: %s\n%s", result.Check, result.State, result.Detail, result.Rule)
		}
	}
}

// Prove runs the checks outside a test. It returns an error if no check can run.
func Prove(ctx context.Context, k Kind, h Harness) (Report, error) {
	h = h.withDefaults()
	if k.Manifest == nil || h.Config == nil || h.Open == nil {
		return Report{}, errors.New("prove a provider: Kind.Manifest, Harness.Config and Harness.Open are required")
	}
	for name := range k.Exempt {
		if !slices.ContainsFunc(catalog, func(c check) bool { return c.name == name }) {
			return Report{}, fmt.Errorf("prove a provider: Kind.Exempt names %s, which is no check", name)
		}
	}
	if err := installCRDs(ctx, h); err != nil {
		return Report{}, fmt.Errorf("prove a provider: %w", err)
	}
	report := Report{Results: make([]Result, len(catalog))}
	free := make(chan struct{}, h.Parallel)
	var running sync.WaitGroup
	for i, c := range catalog {
		report.Results[i] = Result{Check: c.name, Rule: c.rule, State: NotLookedAt, Detail: "not selected"}
		if len(h.Only) > 0 && !slices.Contains(h.Only, c.name) {
			continue
		}
		running.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			result := c.prove(ctx, k, h)
			result.Check, result.Rule = c.name, c.rule
			report.Results[i] = result
		})
	}
	running.Wait()
	return report, nil
}

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

func (c check) prove(ctx context.Context, k Kind, h Harness) (result Result) {
	if reason := k.Exempt[c.name]; reason != "" {
		return Result{State: DoesNotApply, Detail: reason}
	}
	e, err := newEnvironment(ctx, k, h)
	if err != nil {
		return Result{State: NotLookedAt, Detail: "could not be prepared: " + err.Error(), unprepared: true}
	}
	defer func() {
		if err := e.close(ctx); err != nil && result.State == Passed {
			result = Result{State: NotLookedAt, Detail: "could not be cleaned up: " + err.Error(), unprepared: true}
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
		return Result{State: NotLookedAt, Detail: "could not be prepared: " + err.Error(), unprepared: true}
	case err != nil:
		return Result{State: Failed, Detail: err.Error()}
	}
	return Result{State: Passed, Detail: note}
}

// preparationError is an error before the check itself.
type preparationError struct{ err error }

func (e *preparationError) Error() string { return e.err.Error() }
func (e *preparationError) Unwrap() error { return e.err }

// prepare marks an error as one of the preparation.
func prepare(err error) error {
	if err == nil {
		return nil
	}
	return &preparationError{err: err}
}
