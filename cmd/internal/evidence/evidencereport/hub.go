package evidencereport

import (
	"fmt"

	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// decisionStates are the states for the decisions of a preflight of managed clusters. A cluster at risk moves.
var decisionStates = map[preflight.Decision]planreport.State{
	preflight.Ready: planreport.Ready, preflight.AtRisk: planreport.Ready, preflight.Blocked: planreport.Blocked, preflight.NotChecked: planreport.NotChecked,
}

// addPreflight adds the state before a migration. The migration has no name yet, so the two hubs identify it.
func addPreflight(all builders, f File) (int, error) {
	p, err := decode[clusterreport.Preflight](f)
	if err != nil {
		return 0, err
	}
	state := stateIn(decisionStates, p.Decision, planreport.Unknown)
	var blockers []render.ObjectProblem
	for _, c := range p.Checks {
		if c.Decision != preflight.Ready {
			blockers = append(blockers, render.ObjectProblem{Object: c.Name, Problem: c.Problem})
		}
	}
	for _, c := range p.Clusters {
		for _, found := range append(c.Reasons, c.AtRisk...) {
			blockers = append(blockers, render.ObjectProblem{Object: c.Name, Problem: render.Problem{Reason: found.Reason, Message: found.Message}})
		}
	}
	all.of(f.Cluster).object(planreport.Hubs, betweenHubs(p.From, p.To)).setPlan(state, blockers)
	return len(p.Clusters), nil
}

// betweenHubs returns the name of a migration that is not created yet.
func betweenHubs(from, to string) string { return fmt.Sprintf("from %s to %s", from, to) }

func addMigration(all builders, f File) (int, error) {
	m, err := decode[clusterreport.Migration](f)
	if err != nil {
		return 0, err
	}
	all.of(f.Cluster).migration(m)
	return len(m.Clusters), nil
}

// migration adds a migration of managed clusters. Only the document of a single migration has its clusters.
func (b *builder) migration(m clusterreport.Migration) {
	row := planreport.HubRow([]planreport.Migration{{Migration: m}})
	o := b.object(planreport.Hubs, m.Namespace+"/"+m.Name)
	before := objectKey{planreport.Hubs, betweenHubs(m.From, m.To)}
	if p := b.objects[before]; p != nil && o.Before == "" {
		o.Before = p.Before
		delete(b.objects, before)
	}
	o.setRun(string(m.Phase), clusterreport.Progress(m), row.State, row.Blockers)
}
