package revisionupgrade

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/controller/stalled"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// Metrics count upgrades by phase, and revisions by the state that triggers found. They read the cache when the metrics
// are read, so that a series ends with its object. No series is named after a revision.
type Metrics struct {
	reader                       client.Reader
	upgrades, revisions, scanned *prometheus.Desc
}

// NewMetrics returns the metrics of a manager with this cache.
func NewMetrics(cache client.Reader) *Metrics {
	return &Metrics{
		reader:    cache,
		upgrades:  prometheus.NewDesc("godwit_revision_upgrades", "ControllerRevisionUpgrades, by phase.", []string{"phase"}, nil),
		revisions: prometheus.NewDesc("godwit_revisions", "Objects of the family in ControllerRevisions of the whole cluster, by version and form, as the last scan of a trigger found them.", []string{"trigger", "version", "form"}, nil),
		scanned:   prometheus.NewDesc("godwit_revision_last_scan_timestamp_seconds", "When a trigger last scanned for revisions.", []string{"trigger"}, nil),
	}
}

// Register registers the metrics.
func (m *Metrics) Register(r prometheus.Registerer) error { return r.Register(m) }

// Describe lists the metrics.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.upgrades, m.revisions, m.scanned} {
		to <- d
	}
}

// Collect counts. An error of the cache is an error of the scrape, and not zero.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	ctx := context.Background() //nolint:forbidigo // a collector gets no context, and a cache answers at once
	upgrades := &v1alpha1.ControllerRevisionUpgradeList{}
	if err := m.reader.List(ctx, upgrades, client.UnsafeDisableDeepCopy); err != nil {
		to <- prometheus.NewInvalidMetric(m.upgrades, err)
		return
	}
	phases := map[string]int{}
	for _, one := range upgrades.Items {
		phase := string(one.Status.Phase)
		if phase == "" {
			phase = "NotStarted"
		}
		phases[phase]++
	}
	for phase, n := range phases {
		to <- prometheus.MustNewConstMetric(m.upgrades, prometheus.GaugeValue, float64(n), phase)
	}
	triggers := &v1alpha1.ControllerRevisionUpgradeTriggerList{}
	if err := m.reader.List(ctx, triggers, client.UnsafeDisableDeepCopy); err != nil {
		to <- prometheus.NewInvalidMetric(m.revisions, err)
		return
	}
	for _, t := range triggers.Items {
		if t.Status.LastScanTime == nil {
			continue
		}
		to <- prometheus.MustNewConstMetric(m.scanned, prometheus.GaugeValue, float64(t.Status.LastScanTime.Unix()), t.Name)
		for _, v := range t.Status.VersionCounts {
			to <- prometheus.MustNewConstMetric(m.revisions, prometheus.GaugeValue, float64(v.Count), t.Name, v.Version, v.Form)
		}
	}
}

// Stalled returns the function that lists the upgrades that need user action, according to [summaryOf]. A cluster has
// an upgrade for each revision, so they are counted by namespace.
func Stalled(cache client.Reader) func(context.Context) ([]stalled.Object, error) {
	return func(ctx context.Context) ([]stalled.Object, error) {
		upgrades := &v1alpha1.ControllerRevisionUpgradeList{}
		if err := cache.List(ctx, upgrades, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		var all []stalled.Object
		for i := range upgrades.Items {
			one := &upgrades.Items[i]
			if reason := readyReason(one); phaseOf(one) == revision.Failed || reason == decision.ReasonForbidden.Name {
				all = append(all, stalled.Object{Namespace: one.Namespace, Reason: reason})
			}
		}
		return all, nil
	}
}
