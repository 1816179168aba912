package crdmigration

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
)

// States export which condition of each CRDMigration is True, and its reason. They read the cache when the metrics are
// read, so that a series ends with its CRDMigration.
type States struct {
	reader client.Reader
	states *prometheus.Desc
}

// NewStates returns the states of a manager with this cache.
func NewStates(cache client.Reader) *States {
	return &States{reader: cache, states: prometheus.NewDesc("godwit_crd_migration_state",
		"1 for each CRDMigration. The label state is Ready, Reconciling or Stalled: the condition that is True; Suspended; or Unknown before the first status.",
		[]string{"crd", "state", "reason"}, nil)}
}

// Register registers the metric.
func (s *States) Register(r prometheus.Registerer) error { return r.Register(s) }

// Describe implements prometheus.Collector.
func (s *States) Describe(to chan<- *prometheus.Desc) { to <- s.states }

// scrape bounds the wait for a cache that is not filled. It is below the ten seconds after which Prometheus gives up.
const scrape = 5 * time.Second

// Collect writes the states. An error of the cache is an error of the scrape, and not the end of every series.
func (s *States) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrape) //nolint:forbidigo // a collector gets no context
	defer cancel()
	all := &v1alpha1.CRDMigrationList{}
	if err := s.reader.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		to <- prometheus.NewInvalidMetric(s.states, err)
		return
	}
	for i := range all.Items {
		state, reason := stateOf(all.Items[i].Status.Conditions)
		to <- prometheus.MustNewConstMetric(s.states, prometheus.GaugeValue, 1, all.Items[i].Name, state, reason)
	}
}

func stateOf(conditions []metav1.Condition) (state, reason string) {
	ready := meta.FindStatusCondition(conditions, status.Ready)
	if ready == nil {
		return "Unknown", ""
	}
	for _, state := range []string{status.Ready, status.Reconciling, status.Stalled} {
		if meta.IsStatusConditionTrue(conditions, state) {
			return state, ready.Reason
		}
	}
	return ReasonSuspended.Name, ready.Reason
}
