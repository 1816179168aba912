// Package stalled counts the objects of the manager's kinds for which user action is required: those whose condition Stalled is
// True. It reads the cache of the manager when the metrics are read, so that a series ends with its object, or with the cause.
package stalled

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/internal/status"
)

// Object has the labels of a stalled object. For a kind with very many objects, Name is empty, and the metric is the
// number of objects in the namespace.
type Object struct{ Namespace, Name, Reason string }

// Metrics count the stalled objects of one kind.
type Metrics struct {
	described *prometheus.Desc
	list      func(context.Context) ([]Object, error)
}

// NewMetrics returns the metrics of a kind, whose stalled objects are listed when the metrics are read.
func NewMetrics(kind string, list func(context.Context) ([]Object, error)) *Metrics {
	// Prometheus gives a label "namespace" to each series: that of the pod that it scrapes.
	return &Metrics{list: list, described: prometheus.NewDesc("godwit_stalled_objects",
		"Objects whose condition Stalled is True: user action is required. The label name is empty for kinds with very many objects.",
		[]string{"object_namespace", "name", "reason"}, prometheus.Labels{"kind": kind})}
}

// Of returns a list function for a kind whose objects have the conditions of package status. The list is of the kind's type, and
// is filled by the cache.
func Of(cache client.Reader, list client.ObjectList) func(context.Context) ([]Object, error) {
	return func(ctx context.Context) ([]Object, error) {
		found := list.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // a copy has the type of its original
		if err := cache.List(ctx, found, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		items, err := meta.ExtractList(found)
		if err != nil {
			return nil, err
		}
		var all []Object
		for _, item := range items {
			o, ok := item.(status.Object)
			if !ok {
				continue
			}
			if c := meta.FindStatusCondition(*o.Conditions(), status.Stalled); c != nil && c.Status == "True" {
				all = append(all, Object{o.GetNamespace(), o.GetName(), c.Reason})
			}
		}
		return all, nil
	}
}

// Register registers the metrics.
func (m *Metrics) Register(r prometheus.Registerer) error { return r.Register(m) }

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) { to <- m.described }

// scrape bounds the wait for a cache that is not filled. It is below the ten seconds after which Prometheus gives up.
const scrape = 5 * time.Second

// Collect counts. An error of the cache is an error of the scrape, and not zero.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrape) //nolint:forbidigo // a collector gets no context
	defer cancel()
	all, err := m.list(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(m.described, err)
		return
	}
	counts := map[Object]int{}
	for _, one := range all {
		counts[one]++
	}
	for o, n := range counts {
		to <- prometheus.MustNewConstMetric(m.described, prometheus.GaugeValue, float64(n), o.Namespace, o.Name, o.Reason)
	}
}
