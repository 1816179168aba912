package crdinventory

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
)

// Metrics report which CRDs have old versions in status.storedVersions, in and out of the manager's scope. Only a CRD
// with an old version has its own series.
type Metrics struct {
	inventory *Reconciler
	crds, old *prometheus.Desc
}

// NewMetrics returns the metrics of an inventory.
func NewMetrics(inventory *Reconciler) *Metrics {
	return &Metrics{
		inventory: inventory,
		crds: prometheus.NewDesc("godwit_crds",
			"CustomResourceDefinitions of the cluster, by whether the manager migrates them, and by whether status.storedVersions has a version besides the storage version.",
			[]string{"in_scope", "old_versions"}, nil),
		old: prometheus.NewDesc("godwit_crd_old_versions",
			"Versions in status.storedVersions of a CustomResourceDefinition besides its storage version, where there are any.",
			[]string{"crd", "in_scope"}, nil),
	}
}

// Register registers the metrics.
func (m *Metrics) Register(r prometheus.Registerer) error { return r.Register(m) }

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.crds
	to <- m.old
}

// scrape bounds the wait for a cache that is not filled. It is below the ten seconds after which Prometheus gives up.
const scrape = 5 * time.Second

// Collect counts. It writes no series before the CRDs were listed and in a standby replica: unknown is not zero.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrape) //nolint:forbidigo // a collector gets no context
	defer cancel()
	type group struct{ inScope, old bool }
	counts := map[group]int{{true, true}: 0, {true, false}: 0, {false, true}: 0, {false, false}: 0}
	all, listed := m.inventory.entries()
	if !listed {
		return
	}
	for name, e := range all {
		inScope, err := m.migrated(ctx, name, e)
		if err != nil {
			to <- prometheus.NewInvalidMetric(m.crds, err)
			return
		}
		counts[group{inScope, e.old > 0}]++
		if e.old > 0 {
			to <- prometheus.MustNewConstMetric(m.old, prometheus.GaugeValue, float64(e.old), name, strconv.FormatBool(inScope))
		}
	}
	for g, n := range counts {
		to <- prometheus.MustNewConstMetric(m.crds, prometheus.GaugeValue, float64(n), strconv.FormatBool(g.inScope), strconv.FormatBool(g.old))
	}
}

// migrated reports whether the manager migrates a CRD: it is in the scope, or a CRDMigration names it.
func (m *Metrics) migrated(ctx context.Context, name string, e entry) (bool, error) {
	if e.inScope {
		return true, nil
	}
	err := m.inventory.Client.Get(ctx, client.ObjectKey{Name: name}, &v1alpha1.CRDMigration{})
	return err == nil, client.IgnoreNotFound(err)
}
