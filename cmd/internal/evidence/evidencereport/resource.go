package evidencereport

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/resource/resourcereport"
)

// resourceStates are the states that a plan of built-in resources is about.
var resourceStates = map[string]planreport.State{"Clean": planreport.Clean, "Ready": planreport.Ready, "Blocked": planreport.Blocked}

// resourcePlan adds the state before a run. A plan after it says nothing: a resource with objects is always Ready.
func (b *builder) resourcePlan(p resourcereport.Plan) {
	state := stateIn(resourceStates, p.State, planreport.Unknown)
	if o := b.object(planreport.Resources, p.Name); o.Result == "" || state != planreport.Ready {
		o.setPlan(state, render.Of("", p.Blockers...))
	}
}

// rewriteStates are the states that a run over built-in resources leaves.
var rewriteStates = map[resourcereport.Result]planreport.State{
	resourcereport.Succeeded: planreport.Clean, resourcereport.NoChange: planreport.Clean,
	resourcereport.Accepted: planreport.Ready, resourcereport.Partial: planreport.Blocked, resourcereport.Failed: planreport.Blocked, resourcereport.Blocked: planreport.Blocked,
}

func (b *builder) resourceRun(r resourcereport.Run) {
	after := stateIn(rewriteStates, r.Result, planreport.Unknown)
	b.object(planreport.Resources, r.Name).setRun(string(r.Result), resourcereport.Summary(r), after, failures(r.Failures))
}

func (b *builder) resourceVerification(v resourcereport.Verification) {
	forms := render.OrDash(strings.Join(slices.Sorted(maps.Keys(v.ByForm)), ", "))
	proof := fmt.Sprintf("%s: %s in etcd as %s", v.Result, render.Count(v.Objects, "object", "objects"), forms)
	b.object(planreport.Resources, v.Name).setVerification(v.Result == resourcereport.Proven || v.Result == resourcereport.Uniform, proof)
}
