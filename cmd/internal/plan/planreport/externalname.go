package planreport

import (
	"fmt"
	"slices"

	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/audit"
)

// ExternalNameRow returns the row of the managed resources of all kinds, of an audit. lacking is the problem of a user who lacks
// permissions, with the command that grants them; nil if none is missing. Managed resources without a finding are only counted.
func ExternalNameRow(r externalnamereport.AuditReport, lacking *render.Problem, hint Hint) Row {
	var objects []Object
	for _, f := range r.Items {
		o := nameObject(f, hint)
		if last := len(objects) - 1; last >= 0 && objects[last].Name == o.Name { // a managed resource may have several findings
			objects[last] = objects[last].and(o)
			continue
		}
		objects = append(objects, o)
	}
	row := rowOf(ExternalNames, objects)
	row.Counts.Clean = r.Objects - int64(len(objects))
	if len(row.Objects) > 0 { // the most severe one is the first
		row.Next = row.Objects[0].Next
	}
	return row.without(r.Unread, lacking, hint)
}

// without adds the resources that could not be read, as one problem.
func (r Row) without(unread []externalnamereport.AuditUnread, lacking *render.Problem, hint Hint) Row {
	if len(unread) == 0 {
		return r
	}
	failed := slices.IndexFunc(unread, func(u externalnamereport.AuditUnread) bool { return u.Reason != render.ReasonForbidden.Name })
	state, why := NotChecked, unread[0].Problem
	switch {
	case failed >= 0:
		state, why = Unknown, unread[failed].Problem
		why.Message = fmt.Sprintf("%s could not be read, such as %s: %s", render.Count(int64(len(unread)), "resource", "resources"), unread[failed].Resource, why.Message)
	case lacking != nil:
		why = *lacking
	}
	r.Blockers = append(render.Of("", why), r.Blockers...)
	if Severity(state) < Severity(r.State) {
		r.State = state
	}
	if r.Next == "" {
		r.Next = hint("externalname audit")
	}
	return r
}

func nameObject(f externalnamereport.AuditFinding, hint Hint) Object {
	o := Object{Name: f.Resource + "/" + f.Name, State: Ready, Detail: f.ExternalName, Blockers: render.Of("", f.Problem), Next: hint("externalname audit --resource=" + f.Resource)}
	scope := " --all-namespaces"
	if f.Namespace != "" {
		o.Name, scope = f.Resource+"/"+f.Namespace+"/"+f.Name, " --namespace="+f.Namespace
	}
	switch {
	case f.State == externalnamereport.UserAction:
		o.State = Blocked
	case f.Reason == audit.ReasonRenamingInterrupted.Name, f.Reason == audit.ReasonHandoverInterrupted.Name: // it resumes by the apply that began it, or ends by a rollback
		o.Next = hint("externalname rollback --resource=" + f.Resource + scope)
	}
	return o
}

// and returns an object with the findings of both, in the state of the more severe one.
func (o Object) and(other Object) Object {
	blockers := slices.Concat(o.Blockers, other.Blockers)
	if Severity(other.State) < Severity(o.State) {
		o = other
	}
	o.Blockers = blockers
	return o
}
