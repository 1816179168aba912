package planreport

import (
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// maxObjects bounds the objects of a row: more than a person reads in a table.
const maxObjects = 500

// Severity orders states: the most severe one is 0.
func Severity(s State) int { return slices.Index(States, s) }

// rowOf returns the row of a domain's objects. The state of a row without objects is Clean.
func rowOf(d Domain, objects []Object) Row {
	r := Row{Domain: d, State: Clean}
	for _, o := range objects {
		r.Counts.Add(o.State)
		if Severity(o.State) < Severity(r.State) {
			r.State = o.State
		}
	}
	slices.SortStableFunc(objects, func(a, b Object) int { return Severity(a.State) - Severity(b.State) })
	r.Objects = objects[:min(len(objects), maxObjects)]
	r.ObjectsLeftOut = int64(len(objects) - len(r.Objects))
	for _, o := range r.Objects {
		for _, b := range o.Blockers {
			b.Object = o.Name
			r.Blockers = append(r.Blockers, b)
		}
	}
	return r
}

// FailedRow is a domain that could not be read, or a cluster that did not answer.
func FailedRow(d Domain, s State, why render.Problem) Row {
	return Row{Domain: d, State: s, Blockers: render.Of("", why)}
}

// Lacking returns the row with one blocker for all missing permissions, instead of one for each object.
func (r Row) Lacking(one render.Problem) Row {
	forbidden := func(b render.ObjectProblem) bool { return b.Reason == render.ReasonForbidden.Name }
	r.Blockers = append(render.Of("", one), slices.DeleteFunc(r.Blockers, forbidden)...)
	return r
}

// reasonsOf are the reasons of blockers, each once.
func reasonsOf(blockers []render.ObjectProblem) []string {
	var all []string
	for _, b := range blockers {
		if !slices.Contains(all, b.Reason) {
			all = append(all, b.Reason)
		}
	}
	return all
}

// After returns the counts after a successful next command, which does the work of every Ready object and nothing else.
func (r Row) After() Counts {
	c := r.Counts
	c.Clean, c.Ready = c.Clean+c.Ready, 0
	return c
}

// commandFor returns the command for some objects by name, for all objects if they are many, and empty for none.
func commandFor(names []string, some func(names string) string, all string) string {
	const most = 3
	switch {
	case len(names) == 0:
		return ""
	case len(names) > most:
		return all
	}
	return some(strings.Join(names, " "))
}

// namesIn are the names of the objects in a state.
func namesIn(objects []Object, s State) []string {
	var names []string
	for _, o := range objects {
		if o.State == s {
			names = append(names, o.Name)
		}
	}
	return names
}
