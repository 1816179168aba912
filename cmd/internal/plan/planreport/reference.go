package planreport

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// ReferenceRow returns the row of references to versions that CRDs do not serve. grant is the fix with which an
// administrator permits the user to read everything.
func ReferenceRow(d crdreport.DoctorReport, hint Hint, grant string) Row {
	concerns := func(u crdreport.Unread) bool { return !u.Alone }
	unread, lacking := unreadBlocker(d.Unread, grant)
	objects := make([]Object, len(d.Items))
	for i, one := range d.Items {
		objects[i] = referenceObject(one, lacking, hint)
	}
	r := rowOf(References, objects)
	if unread != nil && (r.State != Clean || slices.ContainsFunc(d.Unread, concerns)) {
		r.Blockers = append(render.Of("", *unread), r.Blockers...)
		if slices.ContainsFunc(d.Unread, concerns) && Severity(lacking) < Severity(r.State) {
			r.State = lacking
		}
	}
	if r.State != Clean {
		r.Next = commandFor(namesIn(objects, r.State), func(names string) string { return hint("crd doctor " + names) }, hint("crd doctor"))
	}
	if r.Next == "" && r.State != Clean {
		r.Next = hint("crd doctor")
	}
	return r
}

// referenceObject returns the object of a CRD. A broken reference is a blocker; for a leftover, the next command shows
// the remedy.
func referenceObject(d crdreport.Diagnosis, lacking State, hint Hint) Object {
	o := Object{Name: d.Name, State: Clean, Detail: "serves " + render.Words(d.ServedVersions)}
	for _, f := range d.Findings {
		o.Blockers = append(o.Blockers, render.ObjectProblem{Problem: f.Problem()})
	}
	switch {
	case slices.ContainsFunc(d.Findings, func(f crdreport.Leftover) bool { return f.Broken }):
		o.State = Blocked
	case len(d.Findings) > 0:
		o.State = Ready
	case d.State != string(Clean):
		o.State = lacking
	}
	if o.State != Clean {
		o.Next = hint("crd doctor " + d.Name)
	}
	return o
}

// unreadBlocker returns one blocker for all resources that could not be read, and the state of the CRDs that they may
// reference.
func unreadBlocker(unread []crdreport.Unread, grant string) (*render.Problem, State) {
	if len(unread) == 0 {
		return nil, Unknown
	}
	var names []string
	forbidden := 0
	for _, u := range unread {
		names = append(names, u.Resource)
		if u.Reason == render.ReasonForbidden.Name {
			forbidden++
		}
	}
	const most = 3
	list := strings.Join(names[:min(len(names), most)], ", ")
	if forbidden == len(unread) {
		return &render.Problem{Reason: render.ReasonForbidden.Name, Remedy: grant,
			Message: fmt.Sprintf("the user may not list %s, such as %s: what their objects name is not known", render.Count(int64(len(names)), "resource", "resources"), list)}, NotChecked
	}
	first := unread[slices.IndexFunc(unread, func(u crdreport.Unread) bool { return u.Reason != render.ReasonForbidden.Name })]
	return &render.Problem{Reason: first.Reason, Remedy: first.Remedy,
		Message: fmt.Sprintf("%s could not be read, such as %s: %s", render.Count(int64(len(names)), "resource", "resources"), first.Resource, first.Message)}, Unknown
}
