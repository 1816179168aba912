package manager

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// Metrics count what the manager does. No series is named after a migration or a cluster.
type Metrics struct {
	phases     *prometheus.HistogramVec
	sent       *prometheus.CounterVec
	resent     *prometheus.CounterVec
	refused    *prometheus.CounterVec
	duplicates *prometheus.CounterVec

	reader   client.Reader
	clusters *prometheus.Desc
}

// phaseSeconds are the buckets of phases, whose timeouts are five and twelve minutes.
var phaseSeconds = []float64{1, 5, 15, 30, 60, 120, 300, 720, 1800, 3600}

// timedPhases are the phases whose durations are counted.
var timedPhases = []api.Phase{
	api.PhaseValidating, api.PhaseInitializing, api.PhaseDeploying, api.PhaseRegistering, api.PhaseRollbacking, api.PhaseCleaning,
}

// NewMetrics returns the metrics of a manager. Clusters are counted in the cache whenever
// the metrics are read.
func NewMetrics(cache client.Reader) *Metrics {
	const prefix = "godwit_cluster_migration_"
	m := &Metrics{
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "phase_seconds", Help: "How long a ManagedClusterMigration was in a phase.", Buckets: phaseSeconds,
		}, []string{"phase"}),
		sent:       prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "command_bytes_total", Help: "Bytes of commands that the manager has sent to a hub."}, []string{"hub"}),
		resent:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "commands_resent_total", Help: "Commands that the manager has sent to a hub again, since it did not answer or names what is missing."}, []string{"hub"}),
		refused:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "messages_refused_total", Help: "Messages in the status topic of a hub that the manager has refused, by reason."}, []string{"hub", "reason"}),
		duplicates: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "messages_duplicate_total", Help: "Reports of a hub on a command that it had answered with its final report."}, []string{"hub"}),

		reader:   cache,
		clusters: prometheus.NewDesc(prefix+"clusters", "Clusters of all ManagedClusterMigrations, by what became of them: moving, moved, failed, restored, gone or forgotten.", []string{"state"}, nil),
	}
	// Counters start at 0: Prometheus sees no increase in a counter that starts at 1.
	for _, phase := range timedPhases {
		m.phases.WithLabelValues(string(phase))
	}
	return m
}

// Register registers the metrics.
func (m *Metrics) Register(r prometheus.Registerer) error {
	return errors.Join(r.Register(m.phases), r.Register(m.sent), r.Register(m.resent), r.Register(m.refused), r.Register(m.duplicates), r.Register(m))
}

// Describe implements prometheus.Collector for the count of clusters.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) { to <- m.clusters }

// Collect counts clusters. An error of the cache is an error of the scrape, not a count of zero.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	ctx := context.Background() //nolint:forbidigo // a collector gets no context, and a cache answers at once
	list := &api.ManagedClusterMigrationList{}
	if err := m.reader.List(ctx, list); err != nil {
		to <- prometheus.NewInvalidMetric(m.clusters, err)
		return
	}
	counts := map[string]int32{"moving": 0, "moved": 0, "failed": 0, "restored": 0, "gone": 0, "forgotten": 0}
	for i := range list.Items {
		c := list.Items[i].Status.Counts
		if c == nil {
			continue
		}
		counts["moving"] += c.Total - c.Moved - c.Failed - c.Gone - c.Forgotten
		counts["moved"] += c.Moved
		counts["failed"] += c.Failed - c.Restored
		counts["restored"] += c.Restored
		counts["gone"] += c.Gone
		counts["forgotten"] += c.Forgotten
	}
	for state, n := range counts {
		to <- prometheus.MustNewConstMetric(m.clusters, prometheus.GaugeValue, float64(n), state)
	}
}

func (m *Metrics) phaseEnded(phase api.Phase, took time.Duration) {
	m.phases.WithLabelValues(string(phase)).Observe(took.Seconds())
}
