package hub

import (
	"fmt"
	"strings"
	"testing"

	api "github.com/godwit-dev/godwit/hub/api/v1alpha1"
)

// TestPlacementSelectsTooMany: a placement is bounded as a list is, also if the source hub
// reports more than there can be.
func TestPlacementSelectsTooMany(t *testing.T) {
	selected := func(n int) State {
		r := newRun(t)
		r.state.Placement = "all"
		r.step(Start{At: r.now})
		r.answer(Manager)
		r.report(Source, func(e *Report) {
			for i := range n {
				e.Clusters = append(e.Clusters, fmt.Sprintf("c%d", i))
			}
		})
		return r.state
	}
	if s := selected(maxClusters); s.Phase != api.PhaseValidating || len(s.Clusters) != maxClusters {
		t.Errorf("%d clusters: phase %s, %s, want Validating", maxClusters, s.Phase, s.Message)
	}
	s := selected(100_000)
	if s.Phase != api.PhaseFailed || s.Reason != api.ReasonClustersInvalid || !strings.Contains(s.Message, "more than 5000 clusters") || len(s.Clusters) > maxClusters+1 {
		t.Errorf("100,000 clusters: phase %s, %s, %d are stored, want Failed", s.Phase, s.Message, len(s.Clusters))
	}
}
