package evidencereport

import (
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionreport"
)

func addRevisionPlan(all builders, f File) (int, error) {
	l, err := decode[revisionreport.PlanList](f)
	if err != nil {
		return 0, err
	}
	b := all.of(f.Cluster)
	for _, p := range l.Items {
		row := planreport.RevisionRow(revisionreport.PlanList{Items: []revisionreport.Plan{p}}, noCommands)
		b.object(planreport.Revisions, p.Namespace+"/"+p.Name).setPlan(row.State, row.Blockers)
	}
	return len(l.Items), nil
}

func addRevisionRun(all builders, f File) (int, error) {
	l, err := decode[revisionreport.RunReport](f)
	if err != nil {
		return 0, err
	}
	b := all.of(f.Cluster)
	n := 0
	for r := range l.Items.All() {
		n++
		after := planreport.RevisionState(revisionreport.Plan{State: r.Phase, Problem: r.Problem})
		var blockers []render.ObjectProblem
		if r.Reason != "" && after != planreport.Clean {
			blockers = render.Of("", r.Problem)
		}
		detail := ""
		if r.Replacement != "" {
			detail = "new revision " + r.Replacement
		}
		b.object(planreport.Revisions, r.Namespace+"/"+r.Name).setRun(string(r.Phase), detail, after, blockers)
	}
	return n, nil
}
