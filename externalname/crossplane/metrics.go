package crossplane

import (
	"context"
	"errors"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Metric is a metric that the manager of a provider serves.
type Metric struct {
	Name, Help string
	Labels     []string
}

var (
	operationsMetric = Metric{
		Name: "godwit_external_operations_total",
		Help: "Calls of the functions that a kind has for its external system, by outcome: OK, NotFound, AlreadyExists, " +
			"MultipleMatches, Pending, Unknown or Error. Unknown means that an answer was lost.",
		Labels: []string{"kind", "operation", "outcome"},
	}
	driftMetric = Metric{
		Name:   "godwit_external_drift_objects",
		Help:   "Objects of a kind whose external resource differed from the spec when it was last observed by this process.",
		Labels: []string{"kind"},
	}
	legacyMetric = Metric{
		Name: "godwit_external_name_legacy_total",
		Help: "Observations of an external name that has a former form. A form whose counter stays at zero after all objects " +
			"were observed can be removed from the code.",
		Labels: []string{"kind", "form"},
	}
)

// Metrics lists the metrics of all kinds of this package, for documentation. They are in
// controller-runtime's registry. No series is named after an object.
func Metrics() []Metric { return []Metric{operationsMetric, driftMetric, legacyMetric} }

var (
	operationsTotal  = prometheus.NewCounterVec(prometheus.CounterOpts{Name: operationsMetric.Name, Help: operationsMetric.Help}, operationsMetric.Labels)
	driftObjects     = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: driftMetric.Name, Help: driftMetric.Help}, driftMetric.Labels)
	legacyNamesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{Name: legacyMetric.Name, Help: legacyMetric.Help}, legacyMetric.Labels)
)

func init() {
	metrics.Registry.MustRegister(operationsTotal, driftObjects, legacyNamesTotal)
}

// operation is a function of the author, as a label.
type operation string

const (
	operationGet    operation = "Get"
	operationFind   operation = "Find"
	operationCreate operation = "Create"
	operationUpdate operation = "Update"
	operationDelete operation = "Delete"
	operationAwait  operation = "AwaitOperation"
	operationSearch operation = "FindOperation"
)

// result is the result of a call, for the label outcome. It has few values, to bound the number of series.
type result string

const (
	resultOK              result = "OK"
	resultNotFound        result = "NotFound"
	resultAlreadyExists   result = "AlreadyExists"
	resultMultipleMatches result = "MultipleMatches"
	resultPending         result = "Pending"
	resultUnknown         result = "Unknown"
	resultError           result = "Error"
)

func resultOf(err error) result {
	var multiple *MultipleMatchesError
	switch {
	case err == nil:
		return resultOK
	case errors.Is(err, ErrParentNotFound):
		return resultError
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrOperationNotFound):
		return resultNotFound
	case errors.Is(err, ErrAlreadyExists):
		return resultAlreadyExists
	case errors.Is(err, ErrOperationRunning):
		return resultPending
	case errors.As(err, &multiple):
		return resultMultipleMatches
	case outcomeUnknown(err):
		return resultUnknown
	}
	return resultError
}

// meter counts for one kind.
type meter struct {
	kind string

	mu sync.Mutex
	// differing are the objects whose external resource differs.
	differing map[types.UID]struct{}
}

// newMeter creates the series of a kind, so that the series of an unused form is zero and not absent.
func newMeter(kind string, forms []string) *meter {
	driftObjects.WithLabelValues(kind)
	for _, form := range forms {
		legacyNamesTotal.WithLabelValues(kind, form)
	}
	return &meter{kind: kind, differing: map[types.UID]struct{}{}}
}

func (m *meter) called(op operation, result result) {
	operationsTotal.WithLabelValues(m.kind, string(op), string(result)).Inc()
}

func (m *meter) legacy(form string) { legacyNamesTotal.WithLabelValues(m.kind, form).Inc() }

func (m *meter) drift(mg metav1.Object, differs bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if differs {
		m.differing[mg.GetUID()] = struct{}{}
	} else {
		delete(m.differing, mg.GetUID())
	}
	driftObjects.WithLabelValues(m.kind).Set(float64(len(m.differing)))
}

// metered counts the calls of an author's functions.
func metered[M resource.Managed, K, X any](e External[M, K, X], m *meter) External[M, K, X] {
	counted := e
	counted.Get = func(ctx context.Context, key K) (X, error) {
		observed, err := e.Get(ctx, key)
		m.called(operationGet, resultOf(err))
		return observed, err
	}
	counted.Create = func(ctx context.Context, mg M) (Created[K], error) {
		created, err := e.Create(ctx, mg)
		if err == nil && created.Operation != "" {
			m.called(operationCreate, resultPending)
		} else {
			m.called(operationCreate, resultOf(err))
		}
		return created, err
	}
	counted.Update = func(ctx context.Context, mg M, key K, observed X) (K, error) {
		now, err := e.Update(ctx, mg, key, observed)
		m.called(operationUpdate, resultOf(err))
		return now, err
	}
	counted.Delete = func(ctx context.Context, key K) error {
		err := e.Delete(ctx, key)
		m.called(operationDelete, resultOf(err))
		return err
	}
	if e.Find != nil {
		counted.Find = func(ctx context.Context, mg M) ([]K, error) {
			keys, err := e.Find(ctx, mg)
			m.called(operationFind, resultOf(err))
			return keys, err
		}
	}
	counted.Operation = e.Operation.metered(m)
	return counted
}

func (o Operation[M, K]) metered(m *meter) Operation[M, K] {
	counted := o
	if o.Await != nil {
		counted.Await = func(ctx context.Context, id string) (K, error) {
			key, err := o.Await(ctx, id)
			m.called(operationAwait, resultOf(err))
			return key, err
		}
	}
	if o.Find != nil {
		counted.Find = func(ctx context.Context, mg M) (string, error) {
			id, err := o.Find(ctx, mg)
			m.called(operationSearch, resultOf(err))
			return id, err
		}
	}
	return counted
}
