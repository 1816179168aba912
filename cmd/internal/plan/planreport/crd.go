package planreport

import (
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// Hint is a function that returns a command of godwit for the cluster of a row.
type Hint func(words string) string

// CRDRow returns the row of all CRDs.
func CRDRow(plans []crdreport.Plan, hint Hint) Row {
	objects := make([]Object, len(plans))
	for i, p := range plans {
		objects[i] = crdObject(p, hint)
	}
	r := rowOf(CRDs, objects)
	plan := func(names string) string {
		if len(r.Objects) > 0 && r.Objects[0].Name == names { // it may have a command of its own
			return r.Objects[0].Next
		}
		return hint("crd plan " + names)
	}
	run := func(names string) string { return hint("crd run " + names) }
	switch r.State {
	case Blocked:
		r.Next = commandFor(namesIn(objects, Blocked), plan, hint("crd plan"))
	case NotChecked, Unknown:
		r.Next = commandFor(namesIn(objects, r.State), plan, hint("crd plan"))
	case Ready:
		r.Next = commandFor(namesIn(objects, Ready), run, hint("crd run --all"))
	}
	return r
}

// crdStates maps the states of a plan of a CRD.
var crdStates = map[string]State{"Clean": Clean, "Ready": Ready, "Blocked": Blocked}

func crdObject(p crdreport.Plan, hint Hint) Object {
	o := Object{Name: p.Name, State: Unknown, Detail: crdDetail(p)}
	if s, known := crdStates[p.State]; known {
		o.State = s
	}
	o.Blockers = render.Of("", p.Blockers...)
	if p.Unlisted != nil && len(o.Blockers) == 0 {
		o.Blockers = render.Of("", p.Unlisted.Problem)
	}
	if o.State == Unknown && p.Unlisted != nil && p.Unlisted.Reason == render.ReasonForbidden.Name {
		o.State = NotChecked
	}
	switch o.State {
	case Ready:
		o.Next = hint("crd run " + p.Name)
	case Blocked, NotChecked, Unknown:
		o.Next = hint("crd plan " + p.Name)
	}
	if slices.ContainsFunc(p.Blockers, needsRescue) {
		o.Next = hint("crd rescue " + p.Name)
	}
	return o
}

// needsRescue reports whether `godwit crd rescue` fixes a blocker: objects are stored at a version that the CRD lacks,
// or a rescue was interrupted.
func needsRescue(b render.Problem) bool {
	return slices.Contains([]string{
		decision.ReasonStoredVersionNotInSpec.Name, decision.ReasonUnreadableObjects.Name, decision.ReasonRescueInterrupted.Name,
	}, b.Reason)
}

// crdDetail returns the versions and the number of objects.
func crdDetail(p crdreport.Plan) string {
	var parts []string
	if p.StorageVersion != "" {
		parts = append(parts, "stores "+p.StorageVersion)
	}
	if old := strings.Join(oldVersions(p), ", "); old != "" {
		parts = append(parts, "objects may be stored at "+old)
	}
	if p.Objects != nil {
		parts = append(parts, render.Count(*p.Objects, "object", "objects"))
	}
	return strings.Join(parts, "; ")
}

// oldVersions returns the stored versions except the storage version.
func oldVersions(p crdreport.Plan) []string {
	var old []string
	for _, v := range p.StoredVersions {
		if v != p.StorageVersion {
			old = append(old, v)
		}
	}
	return old
}
