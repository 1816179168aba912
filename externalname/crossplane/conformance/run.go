package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Run runs the checks, logs the table, and reports an error to the test for each check that failed, and for each that
// could not be prepared although its needs are met.
func Run(t *testing.T, k Kind, h Harness) Report {
	t.Helper()
	report, err := Prove(t.Context(), k, h)
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
	if err := installCRDs(ctx, h); err != nil {
		return Report{}, fmt.Errorf("prove a provider: %w", err)
	}
	report := Report{Results: make([]Result, len(catalog))}
	free := make(chan struct{}, h.Parallel)
	var running sync.WaitGroup
	for i, c := range catalog {
		report.Results[i] = Result{Check: c.name, Rule: c.rule, State: NotChecked, Detail: "not selected"}
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

// installCRDs creates the CRDs that do not exist, and waits until they are served.
func installCRDs(ctx context.Context, h Harness) error {
	c, err := client.New(h.Config, client.Options{})
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	for _, crd := range h.CRDs {
		if err := c.Create(ctx, crd.DeepCopy()); err != nil && !kerrors.IsAlreadyExists(err) {
			return fmt.Errorf("create CRD %s: %w", crd.GetName(), err)
		}
		err := poll(ctx, h.Timeout, func() (bool, error) {
			live := crd.DeepCopy()
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
				return false, err
			}
			return conditionOf(live, "Established").status == "True", nil
		})
		if err != nil {
			return fmt.Errorf("wait until CRD %s is established: %w", crd.GetName(), err)
		}
	}
	return nil
}
