package planreport

import (
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fleet"
)

// NamesOfKind are the plans of the managed resources of a CRD, with the names that they have.
type NamesOfKind struct {
	CRD   string
	Plans []externalnamereport.Plan
}

// ExternalNameRow returns the row of all kinds of managed resources. It only counts managed resources without work.
// Without an expression, the names to change are not known: the row shows names that can't be managed, and interrupted
// renamings.
func ExternalNameRow(kinds []NamesOfKind, hint Hint) Row {
	var objects []Object
	var clean int64
	for _, k := range kinds {
		for _, p := range k.Plans {
			if o := nameObject(k.CRD, p, hint); o.State != Clean {
				objects = append(objects, o)
			} else {
				clean++
			}
		}
	}
	r := rowOf(ExternalNames, objects)
	r.Counts.Clean = clean
	for _, o := range r.Objects { // the most severe one is the first
		r.Next = o.Next
		break
	}
	return r
}

func nameObject(crd string, p externalnamereport.Plan, hint Hint) Object {
	o := Object{Name: crd + "/" + p.Name, State: nameState(p), Detail: string(p.Class)}
	scope := " --all-namespaces"
	if p.Namespace != "" {
		o.Name, scope = crd+"/"+p.Namespace+"/"+p.Name, " --namespace="+p.Namespace
	}
	switch o.State {
	case Blocked:
		o.Blockers = render.Of("", p.Problem)
		o.Next = hint("externalname plan --resource=" + crd + " --name=name")
	case Ready:
		o.Detail += ", " + p.Message
		o.Next = hint("externalname rollback --resource=" + crd + scope)
	}
	return o
}

// nameState maps an action. An interrupted renaming is resumed by the apply that began it, or ended by
// a rollback.
func nameState(p externalnamereport.Plan) State {
	switch p.Action {
	case fleet.None:
		return Clean
	case fleet.Resume:
		return Ready
	case fleet.Skip:
		return Blocked
	}
	return Unknown
}
