package evidencereport

import (
	"fmt"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// noCommands words no next command: a report is about what was done.
func noCommands(string) string { return "" }

func (b *builder) crdPlan(p crdreport.Plan) {
	row := planreport.CRDRow([]crdreport.Plan{p}, noCommands)
	b.object(planreport.CRDs, p.Name).setPlan(row.State, row.Blockers)
}

// runStates are the states that a run leaves.
var runStates = map[crdreport.Result]planreport.State{
	crdreport.Succeeded: planreport.Clean, crdreport.NoChange: planreport.Clean, crdreport.Terminating: planreport.Clean,
	crdreport.Accepted: planreport.Ready, crdreport.Planned: planreport.Ready, crdreport.Partial: planreport.Blocked, crdreport.Failed: planreport.Blocked, crdreport.Blocked: planreport.Blocked,
}

func (b *builder) crdRun(r crdreport.Run) {
	after := stateIn(runStates, r.Result, planreport.Unknown)
	summary := crdreport.Summary(r)
	if r.Values != nil {
		summary += "; " + r.Values.String()
	}
	b.object(planreport.CRDs, r.Name).setRun(string(r.Result), summary, after, failures(r.Failures))
}

func failures(list []godwit.Failure) []render.ObjectProblem {
	var all []render.ObjectProblem
	for _, f := range list {
		all = append(all, render.ObjectProblem{Object: render.ObjectName(f.Namespace, f.Name), Problem: render.Problem{Reason: f.Reason.String(), Message: f.Message}})
	}
	return all
}

func (b *builder) verification(v crdreport.Verification) {
	proof := fmt.Sprintf("Proven: %s in etcd at %s", render.Count(v.Objects, "object", "objects"), v.StorageVersion)
	b.object(planreport.CRDs, v.Name).setVerification(v.Proven(), proof)
}

func (b *builder) check(c crdreport.Check) {
	o := b.object(planreport.CRDs, c.Name)
	if o.Proof == "" {
		o.Proof = "Release: " + c.Result
	} else {
		o.Proof += "; release: " + c.Result
	}
	if c.Result != "Safe" {
		o.After = planreport.Blocked
		for _, r := range c.Reasons {
			o.Blockers = append(o.Blockers, render.ObjectProblem{Problem: r.Problem})
		}
	} else if o.After == "" {
		o.After = planreport.Clean
	}
}
