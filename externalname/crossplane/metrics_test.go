package crossplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The metrics are in controller-runtime's registry, and named as Prometheus recommends.
func TestMetricsAreServed(t *testing.T) {
	m := newMeter("Linted", []string{"Former"})
	m.called(operationGet, resultOK) // A vector without series is not served.
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "godwit_external_") {
			continue
		}
		found++
		problems, err := promlint.NewWithMetricFamilies(append(families[:0:0], family)).Lint()
		if err != nil || len(problems) > 0 {
			t.Errorf("%s: %v %v", family.GetName(), problems, err)
		}
	}
	if want := len(Metrics()); found != want {
		t.Errorf("%d metrics are served, want %d", found, want)
	}
}

func TestResultOf(t *testing.T) {
	for err, want := range map[error]result{
		nil:                                         resultOK,
		fmt.Errorf("get: %w", ErrNotFound):          resultNotFound,
		ErrParentNotFound:                           resultError,
		ErrAlreadyExists:                            resultAlreadyExists,
		&MultipleMatchesError{}:                     resultMultipleMatches,
		ErrOperationRunning:                         resultPending,
		fmt.Errorf("post: %w", io.EOF):              resultUnknown,
		errors.New("quota exceeded"):                resultError,
		errors.Join(ErrNotFound, ErrParentNotFound): resultError,
	} {
		if got := resultOf(err); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}

// Every function of an author is counted, and a form that no name has is zero.
func TestMeter(t *testing.T) {
	const kind = "Counted"
	m := newMeter(kind, []string{"Never"})
	e := metered(External[*fake.Managed, string, string]{
		Get: func(context.Context, string) (string, error) { return "", ErrNotFound },
		Create: func(context.Context, *fake.Managed) (Created[string], error) {
			return Pending[string]("job"), nil
		},
		Update: func(context.Context, *fake.Managed, string, string) (string, error) {
			return "", errors.New("quota exceeded")
		},
		Delete: func(context.Context, string) error { return nil },
		Find:   func(context.Context, *fake.Managed) ([]string, error) { return nil, &MultipleMatchesError{} },
		Operation: Operation[*fake.Managed, string]{
			Await: func(context.Context, string) (string, error) { return "", ErrOperationRunning },
			Find:  func(context.Context, *fake.Managed) (string, error) { return "", ErrOperationNotFound },
		},
	}, m)
	ctx := t.Context()
	_, _ = e.Get(ctx, "")
	_, _ = e.Create(ctx, nil)
	_, _ = e.Update(ctx, nil, "", "")
	_ = e.Delete(ctx, "")
	_, _ = e.Find(ctx, nil)
	_, _ = e.Operation.Await(ctx, "")
	_, _ = e.Operation.Find(ctx, nil)
	for op, want := range map[operation]result{
		operationGet: resultNotFound, operationCreate: resultPending, operationUpdate: resultError, operationDelete: resultOK,
		operationFind: resultMultipleMatches, operationAwait: resultPending, operationSearch: resultNotFound,
	} {
		if got := value(operationsTotal.WithLabelValues(kind, string(op), string(want))); got != 1 {
			t.Errorf("%s ended %s %v times, want once", op, want, got)
		}
	}

	one, two := &fake.Managed{}, &fake.Managed{}
	one.SetUID("one")
	two.SetUID("two")
	for _, step := range []struct {
		object  *fake.Managed
		differs bool
		want    float64
	}{{one, true, 1}, {one, true, 1}, {two, true, 2}, {one, false, 1}, {two, false, 0}} {
		m.drift(step.object, step.differs)
		if got := value(driftObjects.WithLabelValues(kind)); got != step.want {
			t.Errorf("%v objects differ, want %v", got, step.want)
		}
	}
	if got := value(legacyNamesTotal.WithLabelValues(kind, "Never")); got != 0 {
		t.Errorf("a form that no name has is %v", got)
	}
	m.legacy("Never")
	if got := value(legacyNamesTotal.WithLabelValues(kind, "Never")); got != 1 {
		t.Errorf("one name is counted as %v", got)
	}
}

func value(c prometheus.Collector) float64 { return testutil.ToFloat64(c) }

// Functions that an author leaves out stay out: decide asks for what exists.
func TestMeteredKeepsNil(t *testing.T) {
	e := metered(External[*fake.Managed, string, string]{}, newMeter("Nil", nil))
	if e.Find != nil || e.Operation.Await != nil || e.Operation.Find != nil || e.List != nil {
		t.Error("a function that is nil became one that panics")
	}
}
