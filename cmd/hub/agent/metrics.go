package agent

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count what an agent does. No series is named after a migration or a cluster.
type Metrics struct {
	commands  *prometheus.CounterVec
	refused   *prometheus.CounterVec
	bundles   *prometheus.CounterVec
	missing   prometheus.Counter
	heartbeat prometheus.Gauge
}

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	const prefix = "godwit_cluster_migration_agent_"
	return &Metrics{
		commands:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "commands_total", Help: "Commands of the manager, by whether the agent executes or repeats its report."}, []string{"handling"}),
		refused:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "messages_refused_total", Help: "Messages that the agent has refused, by topic and reason."}, []string{"topic", "reason"}),
		bundles:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "bundle_bytes_total", Help: "Bytes of resource bundles as they travel, sent and received."}, []string{"direction"}),
		missing:   prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "missing_reports_total", Help: "Reports by which the agent has named resources that did not arrive."}),
		heartbeat: prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "last_heartbeat_timestamp_seconds", Help: "When the brokers have taken the last heartbeat."}),
	}
}

// Register registers the metrics.
func (m *Metrics) Register(r prometheus.Registerer) error {
	return errors.Join(r.Register(m.commands), r.Register(m.refused), r.Register(m.bundles), r.Register(m.missing), r.Register(m.heartbeat))
}
