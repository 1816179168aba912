package crdmigration

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

// Metrics are the metrics of migrations. The series of a CRD end with its CRDMigration; no series is named after an
// object.
type Metrics struct {
	objects     *prometheus.CounterVec
	remaining   *prometheus.GaugeVec
	inFlight    prometheus.GaugeFunc
	writes      prometheus.Histogram
	blockers    *prometheus.GaugeVec
	lastSuccess *prometheus.GaugeVec
}

// NewMetrics returns the metrics of a manager with a limiter.
func NewMetrics(limiter *walk.Limiter) *Metrics {
	return &Metrics{
		objects: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "godwit_crd_objects_total",
			Help: "Objects of a CustomResourceDefinition that a pass visited, by what became of them.",
		}, []string{"crd", "outcome"}),
		remaining: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "godwit_crd_objects_remaining",
			Help: "Objects of a CustomResourceDefinition that the pass under way has not visited yet, as far as the API server says.",
		}, []string{"crd"}),
		inFlight: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "godwit_requests_in_flight",
			Help: "Requests of migrations that the API server has not answered yet.",
		}, func() float64 { now, _ := limiter.InFlight(); return float64(now) }),
		writes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "godwit_crd_write_duration_seconds",
			Help:    "How long the API server takes to answer a write of one object.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15), // 1 ms to 16 s
		}),
		blockers: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "godwit_crd_blockers",
			Help: "What keeps a migration from starting, by reason.",
		}, []string{"crd", "reason"}),
		lastSuccess: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "godwit_crd_last_success_timestamp_seconds",
			Help: "When a pass last ended with nothing left to do.",
		}, []string{"crd"}),
	}
}

// Register registers the metrics.
func (m *Metrics) Register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.objects, m.remaining, m.inFlight, m.writes, m.blockers, m.lastSuccess} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// RoundTripper returns a RoundTripper that times writes of objects to next. It is below the limiter, so that waiting
// for a turn does not count.
func (m *Metrics) RoundTripper(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPatch && r.Method != http.MethodPut || strings.HasPrefix(r.URL.Path, "/apis/apiextensions.k8s.io/") {
			return next.RoundTrip(r)
		}
		began := time.Now()
		resp, err := next.RoundTrip(r)
		if err == nil {
			m.writes.Observe(time.Since(began).Seconds())
		}
		return resp, err
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// outcomeLabels are the values of the label outcome.
var outcomeLabels = []string{"migrated", "unchanged", "skipped", "gone", "deferred", "failed"}

// countReports returns a function that counts the reports of a run and passes each to next. A report is cumulative, so
// only the difference to the last one is counted. A run without objects counts zero: an alert needs the series.
func (m *Metrics) countReports(crd string, next func(decision.Report)) func(decision.Report) {
	for _, outcome := range outcomeLabels {
		m.objects.WithLabelValues(crd, outcome)
	}
	var mu sync.Mutex
	var counted godwit.Counts
	return func(r decision.Report) {
		mu.Lock()
		now := r.Storage.Counts
		for outcome, n := range map[string]int64{
			"migrated": now.Migrated - counted.Migrated, "unchanged": now.Unchanged - counted.Unchanged, "skipped": now.Skipped - counted.Skipped,
			"gone": now.Gone - counted.Gone, "deferred": now.Deferred - counted.Deferred, "failed": now.Failed - counted.Failed,
		} {
			if n > 0 {
				m.objects.WithLabelValues(crd, outcome).Add(float64(n))
			}
		}
		counted = now
		mu.Unlock()
		if r.Storage.Remaining >= 0 {
			m.remaining.WithLabelValues(crd).Set(float64(r.Storage.Remaining))
		}
		next(r)
	}
}

// countPass counts how a pass ended.
func (m *Metrics) countPass(crd string, o outcome, now time.Time) {
	m.blockers.DeletePartialMatch(prometheus.Labels{"crd": crd})
	for _, b := range o.blockers {
		m.blockers.WithLabelValues(crd, b.Reason.String()).Add(1)
	}
	if o.State == status.StateReady {
		m.remaining.WithLabelValues(crd).Set(0)
		m.lastSuccess.WithLabelValues(crd).Set(float64(now.Unix()))
	}
}

func (m *Metrics) drop(crd string) {
	of := prometheus.Labels{"crd": crd}
	m.objects.DeletePartialMatch(of)
	m.remaining.DeletePartialMatch(of)
	m.blockers.DeletePartialMatch(of)
	m.lastSuccess.DeletePartialMatch(of)
}
