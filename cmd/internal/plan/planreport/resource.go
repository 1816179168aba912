package planreport

import (
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// Left is a resource of an interrupted run.
type Left struct {
	Name, Namespace string
	// Complete means that the run has written every object.
	Complete bool
}

// ResourceRow returns the row of an interrupted run. No API shows which objects such a run has not written.
func ResourceRow(left []Left, hint Hint) Row {
	objects := make([]Object, len(left))
	var names []string
	namespace := ""
	for i, l := range left {
		o := Object{Name: l.Name, State: Ready, Detail: "begun"}
		if l.Complete {
			o.Detail = "every object is written"
		}
		if l.Namespace != "" {
			o.Name, namespace = l.Namespace+"/"+l.Name, " -n "+l.Namespace
		}
		if !slices.Contains(names, l.Name) {
			names = append(names, l.Name)
		}
		objects[i] = o
	}
	next := hint("resource run " + strings.Join(names, " ") + namespace)
	for i := range objects {
		objects[i].Next = next
	}
	r := rowOf(Resources, objects)
	r.Next = next
	r.Blockers = render.Of("", render.Problem{
		Reason:  ReasonInterruptedRun.Name,
		Message: "a run over " + strings.Join(names, ", ") + ", and perhaps others that its command line named, was interrupted: objects are left as they were",
		Remedy:  runAgain(next).String(),
	})
	return r
}
