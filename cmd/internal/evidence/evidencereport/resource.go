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

// addResourcePlans adds the state before a run. A plan after it says nothing: a resource with objects is always Ready.
func addResourcePlans(all builders, f File) (int, error) {
	l, err := decode[render.List[resourcereport.Plan]](f)
	if err != nil {
		return 0, err
	}
	for _, p := range l.Items {
		state, known := resourceStates[p.State]
		if !known {
			state = planreport.Unknown
		}
		if o := all.of(f.Cluster).object(planreport.Resources, p.Name); o.Result == "" || state != planreport.Ready {
			o.planned(state, render.Of("", p.Blockers...))
		}
	}
	return len(l.Items), nil
}

// rewriteStates are the states that a run over built-in resources leaves.
var rewriteStates = map[resourcereport.Result]planreport.State{
	resourcereport.Succeeded: planreport.Clean, resourcereport.NoChange: planreport.Clean,
	resourcereport.Partial: planreport.Blocked, resourcereport.Failed: planreport.Blocked, resourcereport.Blocked: planreport.Blocked,
}

func addResourceRuns(all builders, f File) (int, error) {
	l, err := decode[render.List[resourcereport.Run]](f)
	if err != nil {
		return 0, err
	}
	for _, r := range l.Items {
		after, known := rewriteStates[r.Result]
		if !known {
			after = planreport.Unknown
		}
		all.of(f.Cluster).object(planreport.Resources, r.Name).ran(string(r.Result), resourcereport.Summary(r), after, failures(r.Failures))
	}
	return len(l.Items), nil
}

func addResourceVerifications(all builders, f File) (int, error) {
	l, err := decode[render.List[resourcereport.Verification]](f)
	if err != nil {
		return 0, err
	}
	for _, v := range l.Items {
		o := all.of(f.Cluster).object(planreport.Resources, v.Name)
		o.Proof = notProven
		switch v.Result {
		case resourcereport.Proven, resourcereport.Uniform:
			forms := strings.Join(slices.Sorted(maps.Keys(v.ByForm)), ", ")
			o.Proof = fmt.Sprintf("%s: %s in etcd as %s", v.Result, render.Count(v.Objects, "object", "objects"), render.OrDash(forms))
			if o.After == "" {
				o.After = planreport.Clean
			}
		default:
			if o.After == planreport.Clean || o.After == "" {
				o.After = planreport.Ready
			}
		}
	}
	return len(l.Items), nil
}
