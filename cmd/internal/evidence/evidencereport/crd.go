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

func addCRDPlans(all builders, f File) (int, error) {
	l, err := decode[render.List[crdreport.Plan]](f)
	if err != nil {
		return 0, err
	}
	for _, p := range l.Items {
		row := planreport.CRDRow([]crdreport.Plan{p}, noCommands)
		all.of(f.Cluster).object(planreport.CRDs, p.Name).planned(row.State, row.Blockers)
	}
	return len(l.Items), nil
}

// runStates are the states that a run leaves.
var runStates = map[crdreport.Result]planreport.State{
	crdreport.Succeeded: planreport.Clean, crdreport.NoChange: planreport.Clean, crdreport.Terminating: planreport.Clean,
	crdreport.Partial: planreport.Blocked, crdreport.Failed: planreport.Blocked, crdreport.Blocked: planreport.Blocked,
}

func addCRDRuns(all builders, f File) (int, error) {
	l, err := decode[render.List[crdreport.Run]](f)
	if err != nil {
		return 0, err
	}
	for _, r := range l.Items {
		after, known := runStates[r.Result]
		if !known {
			after = planreport.Unknown
		}
		all.of(f.Cluster).object(planreport.CRDs, r.Name).ran(string(r.Result), crdreport.Summary(r), after, failures(r.Failures))
	}
	return len(l.Items), nil
}

func failures(list []godwit.Failure) []render.ObjectProblem {
	var all []render.ObjectProblem
	for _, f := range list {
		all = append(all, render.ObjectProblem{Object: render.ObjectName(f.Namespace, f.Name), Problem: render.Problem{Reason: f.Reason.String(), Message: f.Message}})
	}
	return all
}

func addVerifications(all builders, f File) (int, error) {
	l, err := decode[render.List[crdreport.Verification]](f)
	if err != nil {
		return 0, err
	}
	for _, v := range l.Items {
		o := all.of(f.Cluster).object(planreport.CRDs, v.Name)
		o.Proof = notProven
		switch {
		case v.Proven():
			o.Proof = fmt.Sprintf("Proven: %s in etcd at %s", render.Count(v.Objects, "object", "objects"), v.StorageVersion)
			if o.After == "" {
				o.After = planreport.Clean
			}
		case o.After == planreport.Clean || o.After == "":
			o.After = planreport.Ready
		}
	}
	return len(l.Items), nil
}

func addChecks(all builders, f File) (int, error) {
	l, err := decode[render.List[crdreport.Check]](f)
	if err != nil {
		return 0, err
	}
	for _, c := range l.Items {
		o := all.of(f.Cluster).object(planreport.CRDs, c.Name)
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
	return len(l.Items), nil
}
