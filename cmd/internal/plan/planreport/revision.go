package planreport

import (
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionreport"
	"github.com/godwit-dev/godwit/revision/decision"
)

// RevisionRow returns the row of a scan of the whole cluster. It only counts revisions without work: a cluster may have
// one for each VirtualMachine.
func RevisionRow(l revisionreport.PlanList, hint Hint) Row {
	var objects []Object
	var clean int64
	for _, p := range l.Items {
		o := revisionObject(p, hint)
		if o.State == Clean {
			clean++
			continue
		}
		objects = append(objects, o)
	}
	r := rowOf(Revisions, objects)
	r.Counts.Clean = clean
	if r.State == Clean && len(l.VersionsInUse) > 0 {
		r.State = InProgress // old revisions that are retained, for the time of the retention
	}
	switch r.State {
	case Ready:
		r.Next = hint("revision run --all-namespaces")
	case InProgress:
		r.Next = hint("revision status")
	case Blocked, Unknown:
		r.Next = hint("revision plan")
	}
	return r
}

func revisionObject(p revisionreport.Plan, hint Hint) Object {
	o := Object{Name: p.Namespace + "/" + p.Name, State: RevisionState(p), Detail: "version " + render.OrDash(p.Version) + ", target " + render.OrDash(p.Target)}
	if p.Owner.Name != "" {
		o.Detail += ", of " + p.Owner.Kind + " " + p.Owner.Name
	}
	if p.Reason != "" && o.State != Clean {
		o.Blockers = render.Of("", p.Problem)
	}
	switch o.State {
	case Ready:
		o.Next = hint("revision run -n " + p.Namespace)
	case InProgress:
		o.Next = hint("revision status -n " + p.Namespace)
	case Blocked, Unknown:
		o.Next = hint("revision plan -n " + p.Namespace)
	}
	return o
}

// RevisionState maps the state of a revision.
func RevisionState(p revisionreport.Plan) State {
	if p.Reason == decision.ReasonUnconfirmed.Name {
		return Unknown
	}
	switch p.State {
	case revisionreport.StateUpgrade, revisionreport.StateRelabel:
		return Ready
	case revisionreport.StateInUse, revisionreport.StateDeferred:
		return InProgress
	case revisionreport.StateBlocked, revisionreport.StateFailed:
		return Blocked
	case revisionreport.StateRetained, revisionreport.StateRolledBack, revisionreport.StateSkipped,
		revisionreport.StateSucceeded, revisionreport.StateUnreferenced, revisionreport.StateUpToDate:
		return Clean
	}
	return Unknown
}
