package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/crds"
)

// Run runs the checks, logs the table, and reports an error to the test for each check that failed, and for each that
// could not be prepared although its needs are met. It ends before the time limit of go test: the checks that did not end
// are NotChecked.
func Run(t *testing.T, k Kind, h Harness) Report {
	t.Helper()
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		// The rest of the time is for the cleanup and the table.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-min(time.Until(deadline)/10, 2*cleanupTimeout)))
		defer cancel()
	}
	report, err := Prove(ctx, k, h)
	if err != nil {
		t.Fatal(err)
	}
	report.Log(t)
	return report
}

// Log logs the table, and reports an error to the test for each check that failed.
func (r Report) Log(t *testing.T) {
	t.Helper()
	var table strings.Builder
	if err := r.Write(&table); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	for _, result := range r.Results {
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
			return Report{}, fmt.Errorf("prove a provider: Kind.Exempt names %s, which is not a check", name)
		}
	}
	if err := crds.Install(ctx, h.Config, h.CRDs, h.Timeout); err != nil {
		return Report{}, fmt.Errorf("prove a provider: %w", err)
	}
	report := Report{Results: make([]Result, len(catalog))}
	progress := progress{to: h.Progress, kind: k.Manifest("progress", "progress").GetKind(), checks: len(catalog)}
	if len(h.Only) > 0 {
		progress.checks = len(h.Only)
	}
	free := make(chan struct{}, h.Parallel)
	var running sync.WaitGroup
	for i, c := range catalog {
		report.Results[i] = Result{Check: c.name, Rule: c.rule, State: NotChecked, Detail: "not selected"}
		if len(h.Only) > 0 && !slices.Contains(h.Only, c.name) {
			continue
		}
		free <- struct{}{} // here, so that the checks begin in the order of the report
		running.Go(func() {
			defer func() { <-free }()
			began := time.Now()
			result := c.prove(ctx, k, h)
			if ctx.Err() != nil && result.State != Passed {
				result = Result{State: NotChecked, Detail: "the time is over: raise -timeout of go test, or Harness.Parallel", unprepared: true}
			}
			result.Check, result.Rule = c.name, c.rule
			report.Results[i] = result
			progress.ended(result, time.Since(began))
		})
	}
	running.Wait()
	return report, nil
}

// progress prints a line for each check that has ended.
type progress struct {
	to     io.Writer
	kind   string
	checks int

	mu   sync.Mutex
	done int
}

func (p *progress) ended(r Result, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	fmt.Fprintf(p.to, "conformance of %s: %d/%d %s %s (%.1fs) %s\n", p.kind, p.done, p.checks, r.Check, r.State, took.Seconds(), oneLine(r.Detail))
}
