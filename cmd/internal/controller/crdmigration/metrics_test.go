package crdmigration

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

func TestMetrics(t *testing.T) {
	m := NewMetrics(walk.NewLimiter(walk.Limits{}))
	registry := prometheus.NewPedanticRegistry()
	if err := m.Register(registry); err != nil {
		t.Fatal(err)
	}
	count := m.countReports("a.example.com", func(decision.Report) {})
	for _, n := range []int64{1, 2, 3} { // a run reports what it has done so far
		count(decision.Report{Storage: walk.Report{Counts: godwit.Counts{Migrated: n, Failed: 1}, Remaining: 10 - n}})
	}
	m.countReports("b.example.com", func(decision.Report) {})(decision.Report{Storage: walk.Report{Counts: godwit.Counts{Unchanged: 1}}})
	m.countReports("c.example.com", func(decision.Report) {}) // it hangs before its first report
	m.countPass("a.example.com", outcome{blockers: []godwit.Finding{{Reason: decision.ReasonForbidden}, {Reason: decision.ReasonForbidden}}}, time.Now())
	m.countPass("b.example.com", outcome{Summary: status.Summary{State: status.StateReady}}, time.Unix(1000, 0))

	want := `# HELP godwit_crd_objects_total Objects of a CustomResourceDefinition that a pass visited, by what became of them.
# TYPE godwit_crd_objects_total counter
godwit_crd_objects_total{crd="a.example.com",outcome="deferred"} 0
godwit_crd_objects_total{crd="a.example.com",outcome="failed"} 1
godwit_crd_objects_total{crd="a.example.com",outcome="gone"} 0
godwit_crd_objects_total{crd="a.example.com",outcome="migrated"} 3
godwit_crd_objects_total{crd="a.example.com",outcome="skipped"} 0
godwit_crd_objects_total{crd="a.example.com",outcome="unchanged"} 0
godwit_crd_objects_total{crd="b.example.com",outcome="deferred"} 0
godwit_crd_objects_total{crd="b.example.com",outcome="failed"} 0
godwit_crd_objects_total{crd="b.example.com",outcome="gone"} 0
godwit_crd_objects_total{crd="b.example.com",outcome="migrated"} 0
godwit_crd_objects_total{crd="b.example.com",outcome="skipped"} 0
godwit_crd_objects_total{crd="b.example.com",outcome="unchanged"} 1
godwit_crd_objects_total{crd="c.example.com",outcome="deferred"} 0
godwit_crd_objects_total{crd="c.example.com",outcome="failed"} 0
godwit_crd_objects_total{crd="c.example.com",outcome="gone"} 0
godwit_crd_objects_total{crd="c.example.com",outcome="migrated"} 0
godwit_crd_objects_total{crd="c.example.com",outcome="skipped"} 0
godwit_crd_objects_total{crd="c.example.com",outcome="unchanged"} 0
# HELP godwit_crd_objects_remaining Objects of a CustomResourceDefinition that the pass under way has not visited yet, as far as the API server says.
# TYPE godwit_crd_objects_remaining gauge
godwit_crd_objects_remaining{crd="a.example.com"} 7
godwit_crd_objects_remaining{crd="b.example.com"} 0
# HELP godwit_crd_blockers What keeps a migration from starting, by reason.
# TYPE godwit_crd_blockers gauge
godwit_crd_blockers{crd="a.example.com",reason="Forbidden"} 2
# HELP godwit_crd_last_success_timestamp_seconds When a pass last ended with nothing left to do.
# TYPE godwit_crd_last_success_timestamp_seconds gauge
godwit_crd_last_success_timestamp_seconds{crd="b.example.com"} 1000
`
	names := []string{"godwit_crd_objects_total", "godwit_crd_objects_remaining", "godwit_crd_blockers", "godwit_crd_last_success_timestamp_seconds"}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %+v, %v", problems, err)
	}

	m.drop("a.example.com")
	m.drop("b.example.com")
	m.drop("c.example.com")
	if n, err := testutil.GatherAndCount(registry, names...); n != 0 || err != nil {
		t.Errorf("%d series outlive their objects, %v", n, err)
	}
}
