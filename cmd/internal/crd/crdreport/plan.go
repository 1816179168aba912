package crdreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

var planStates = map[string]render.Cell{
	"Clean":   {Text: "✓ Clean", Tone: render.Good},
	"Ready":   {Text: "● Ready", Tone: render.Attention},
	"Blocked": {Text: "✗ Blocked", Tone: render.Bad},
	"Unknown": {Text: "? Unknown", Tone: render.Unsure},
}

// planTable has the columns of plans.
var planTable = render.Table[Plan]{
	{Name: "Name", Cell: func(p Plan) render.Cell { return render.TextCell(p.Name) }},
	{Name: "State", Cell: func(p Plan) render.Cell { return planStates[p.State] }},
	{Name: "Storage", Cell: func(p Plan) render.Cell { return render.TextCell(p.StorageVersion) }},
	{Name: "Stored", Cell: func(p Plan) render.Cell { return render.WordsCell(p.StoredVersions) }},
	{Name: "Objects", Cell: func(p Plan) render.Cell { return render.CountCell(p.Objects) }},
	{Name: "Served", Wide: true, Cell: func(p Plan) render.Cell { return render.WordsCell(p.ServedVersions) }},
	{Name: "Managed fields", Wide: true, Cell: func(p Plan) render.Cell { return render.TextCell(p.ManagedFields) }},
}

// WritePlans writes a table of plans, their blockers and warnings with remedies, and a sum.
// Plans that need an action come first. Clean plans without warnings are only counted,
// unless all is true or the table is wide.
func WritePlans(w io.Writer, s render.Style, plans []Plan, all bool) error {
	sum := planSum(plans)
	plans, folded := foldPlans(plans, all || s.Wide)
	slices.SortStableFunc(plans, func(a, b Plan) int { return planOrder(a) - planOrder(b) })
	var text strings.Builder
	text.WriteString(planTable.Text(s, plans))
	for _, p := range plans {
		p.explain(&text, s)
	}
	for _, p := range plans {
		if p.ManagedFields == "Stale" {
			fmt.Fprintf(&text, "\n%s: managedFields of objects name versions that are not served; a run cleans them\n", p.Name)
		}
	}
	if len(plans) > 0 {
		text.WriteByte('\n')
	}
	if folded.Lacking > 0 {
		fmt.Fprintf(&text, "%s not shown, because permissions are missing; -o wide shows all\n", render.CRDs(folded.Lacking))
	}
	fmt.Fprintf(&text, "%s\n", sum)
	_, err := io.WriteString(w, text.String())
	return err
}

// explain writes the blockers and warnings of a plan below its name.
func (p Plan) explain(text *strings.Builder, s render.Style) {
	var lines strings.Builder
	if unknown := p.unknown(); unknown != nil {
		lines.WriteString(unknown.Lines(s, render.MarkUnknown))
	}
	for _, b := range p.Blockers {
		lines.WriteString(b.Lines(s, render.MarkBad))
	}
	for _, b := range p.Warnings {
		if b.Reason == render.ReasonForbidden.Name {
			continue // printed once for all CRDs
		}
		lines.WriteString(b.Lines(s, render.MarkAttention))
	}
	text.WriteString(render.Below(p.Name, lines.String()))
}

// Folded counts CRDs without a row in a table.
type Folded struct {
	// Clean means that there is nothing to do.
	Clean int64
	// Lacking means that permissions are missing and that no other blocker is known.
	Lacking int64
}

// ManyLacking is the largest number of CRDs with missing permissions that have a row each.
// More are counted in one line.
const ManyLacking = 5

func foldPlans(plans []Plan, all bool) (shown []Plan, folded Folded) {
	shown = slices.Clone(plans)
	slices.SortStableFunc(shown, func(a, b Plan) int { return planOrder(a) - planOrder(b) })
	if all {
		return shown, folded
	}
	var lacking int
	for _, p := range plans {
		if p.onlyLacks() {
			lacking++
		}
	}
	shown = slices.DeleteFunc(shown, func(p Plan) bool {
		switch {
		case p.State == string(decision.Clean) && len(p.Warnings) == 0:
			folded.Clean++
		case p.onlyLacks() && lacking > ManyLacking:
			folded.Lacking++
		default:
			return false
		}
		return true
	})
	return shown, folded
}

// onlyLacks reports whether missing permissions are the only finding.
func (p Plan) onlyLacks() bool {
	forbidden := func(b render.Problem) bool { return b.Reason == render.ReasonForbidden.Name }
	switch decision.State(p.State) {
	case decision.StateUnknown:
		return p.Unlisted != nil && p.Unlisted.Reason == render.ReasonForbidden.Name && len(p.Warnings) == 0
	case decision.Blocked:
		return p.Unlisted != nil && p.Unlisted.Reason == render.ReasonForbidden.Name && !slices.ContainsFunc(p.Blockers, func(b render.Problem) bool { return !forbidden(b) })
	}
	return false
}

func planOrder(p Plan) int {
	return slices.Index([]string{"Blocked", "Unknown", "Ready", "Clean"}, p.State)
}

// unknown returns why the objects are unknown, for the table. It returns nil for missing
// permissions, which are printed once for all CRDs.
func (p Plan) unknown() *Unlisted {
	if p.State != string(decision.StateUnknown) || p.Unlisted == nil || p.Unlisted.Reason == decision.ReasonForbidden.Name {
		return nil
	}
	return p.Unlisted
}

// planSum adds up the plans. It never adds objects that were not counted, and never says that no
// object has to be migrated if some objects were not counted.
func planSum(plans []Plan) string {
	states := map[string]int64{}
	var objects, uncounted, blocked int64 // uncounted and blocked: CRDs without a count of objects
	for _, p := range plans {
		states[p.State]++
		switch {
		case p.State == string(decision.Clean):
		case p.Objects == nil && p.State == string(decision.Blocked):
			blocked++
		case p.Objects == nil:
			uncounted++
		case p.State == string(decision.Ready) && !onlyManagedFields(p):
			objects += *p.Objects
		}
	}
	sum := fmt.Sprintf("%s: %d clean, %d ready, %d blocked", render.CRDs(int64(len(plans))), states["Clean"], states["Ready"], states["Blocked"])
	if states["Unknown"] > 0 {
		sum += fmt.Sprintf(", %d unknown", states["Unknown"])
	}
	switch {
	case states["Ready"] == 0:
		return sum
	case uncounted+blocked > 0 && objects == 0:
		return sum + "; how many objects to migrate is unknown"
	case uncounted > 0:
		return sum + fmt.Sprintf("; at least %s to migrate", render.Count(objects, "object", "objects"))
	}
	return sum + fmt.Sprintf("; %s to migrate", render.Count(objects, "object", "objects"))
}

// onlyManagedFields reports whether no object has to be migrated. It is false if
// status.storedVersions may be wrong.
func onlyManagedFields(p Plan) bool {
	return slices.Equal(p.StoredVersions, []string{p.StorageVersion}) &&
		!slices.ContainsFunc(p.Warnings, func(w render.Problem) bool { return w.Reason == decision.ReasonStoredVersionsDoubtful.Name })
}
