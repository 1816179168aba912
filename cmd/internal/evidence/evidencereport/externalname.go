package evidencereport

import (
	"fmt"

	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fleet"
)

// nameOf names a managed resource by its kind, since the documents have no CRD.
func nameOf(kind, namespace, name string) string {
	return kind + "/" + render.ObjectName(namespace, name)
}

// nameStates are the states of managed resources that a plan is about. A plan for a rename knows the
// new names, which a plan of the cluster does not.
var nameStates = map[fleet.Action]planreport.State{
	fleet.None: planreport.Clean, fleet.Rename: planreport.Ready, fleet.Resume: planreport.Ready, fleet.Skip: planreport.Blocked,
}

func (b *builder) namePlan(p externalnamereport.Plan) {
	state := stateIn(nameStates, p.Action, planreport.Unknown)
	var blockers []render.ObjectProblem
	if state == planreport.Blocked {
		blockers = render.Of("", p.Problem)
	}
	b.object(planreport.ExternalNames, nameOf(p.Kind, p.Namespace, p.Name)).setPlan(state, blockers)
}

// phaseStates are the states that a run leaves.
var phaseStates = map[fleet.Phase]planreport.State{
	fleet.PhaseRenamed: planreport.Clean, fleet.PhaseRolledBack: planreport.Clean, fleet.PhaseRestored: planreport.Clean,
	fleet.PhaseInterrupted: planreport.Ready, fleet.PhaseDeferred: planreport.Ready,
}

func (b *builder) nameRun(r externalnamereport.Run) {
	after := stateIn(phaseStates, r.Phase, planreport.Blocked)
	var blockers []render.ObjectProblem
	if r.Reason != "" && after != planreport.Clean {
		blockers = render.Of("", r.Problem)
	}
	b.object(planreport.ExternalNames, nameOf(r.Kind, r.Namespace, r.Name)).
		setRun(string(r.Phase), fmt.Sprintf("%q, before %q", r.After, r.Before), after, blockers)
}
