package revisionreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/reference"
)

// revisionOrder is the order of the table: revisions that need the user come first.
var revisionOrder = []State{
	StateBlocked, StateDeferred, StateInUse, StateUpgrade, StateRelabel, StateRetained, StateRolledBack, StateUnreferenced, StateUpToDate,
}

var versionTable = render.Table[revision.VersionCount]{
	{Name: "Version", Cell: func(c revision.VersionCount) render.Cell { return render.TextCell(c.Version) }},
	{Name: "Form", Cell: func(c revision.VersionCount) render.Cell { return render.TextCell(c.Form) }},
	{Name: "Count", Cell: func(c revision.VersionCount) render.Cell { return render.NumberCell(c.Count) }},
}

var planTable = render.Table[Plan]{
	{Name: "State", Cell: func(p Plan) render.Cell { return revisionStates[p.State] }},
	{Name: "Namespace", Cell: func(p Plan) render.Cell { return render.TextCell(p.Namespace) }},
	{Name: "Owner", Cell: func(p Plan) render.Cell { return ownerCell(p.Owner) }},
	{Name: "Version", Cell: func(p Plan) render.Cell { return render.TextCell(p.Version) }},
	{Name: "Target", Cell: func(p Plan) render.Cell { return render.TextCell(p.Target) }},
	{Name: "Reason", Cell: func(p Plan) render.Cell { return render.TextCell(p.Reason) }},
	{Name: "Revision", Key: true, Cell: func(p Plan) render.Cell { return render.TextCell(p.Name) }},
	{Name: "Form", Wide: true, Cell: func(p Plan) render.Cell { return render.TextCell(p.Form) }},
	{Name: "Referrers", Wide: true, Cell: func(p Plan) render.Cell { return render.WordsCell(referencesText(p.References)) }},
}

// WritePlan writes the number of revisions by version, the revisions with their reasons, and
// a sum. Revisions that are up to date are only counted, unless the table is wide.
func WritePlan(w io.Writer, s render.Style, l PlanList) error {
	var text strings.Builder
	text.WriteString(versionTable.Text(s, l.VersionCounts))
	shown := slices.DeleteFunc(slices.Clone(l.Items), func(p Plan) bool { return p.Action == decision.UpToDate && !s.Wide })
	if len(shown) > 0 && len(l.VersionCounts) > 0 {
		text.WriteString("\n")
	}
	writePlans(&text, s, shown)
	writeVersions(&text, s, l)
	fmt.Fprintf(&text, "\n%s\n", revisionSum(l.Items))
	whole := text.String()
	if len(l.Items) == 0 {
		whole = strings.TrimPrefix(whole, "\n")
	}
	_, err := io.WriteString(w, whole)
	return err
}

// writePlans writes a table with the reasons below it.
func writePlans(text *strings.Builder, s render.Style, items []Plan) {
	slices.SortStableFunc(items, func(a, b Plan) int {
		return slices.Index(revisionOrder, a.State) - slices.Index(revisionOrder, b.State)
	})
	text.WriteString(planTable.Text(s, items))
	for _, p := range items {
		if p.Reason == "" || p.Reason == decision.ReasonRetained.Name && p.RetainedUntil != nil {
			continue
		}
		mark := render.MarkAttention
		if p.Action == decision.Blocked {
			mark = render.MarkBad
		}
		text.WriteString(render.Below(render.ObjectName(p.Namespace, p.Name), p.Lines(s, mark)))
	}
}

// writeVersions writes which versions can be dropped, and the users of the others.
func writeVersions(text *strings.Builder, s render.Style, l PlanList) {
	if len(l.DroppableVersions)+len(l.VersionsInUse) > 0 {
		text.WriteString("\n")
	}
	for _, v := range l.DroppableVersions {
		fmt.Fprintf(text, "%s no revision is stored at it; you can drop it\n", s.Paint(render.Good, "✓ "+v+":"))
	}
	for _, v := range l.VersionsInUse {
		fmt.Fprintf(text, "%s %s\n", s.Paint(render.Attention, "● "+v.Version+":"), "still used by "+render.Count(v.Count, "object", "objects"))
		for _, by := range v.UsedBy {
			fmt.Fprintf(text, "    %s\n", by)
		}
		if more := v.Count - int64(len(v.UsedBy)); more > 0 {
			fmt.Fprintf(text, "    … and %s more\n", render.Number(more))
		}
	}
}

func revisionSum(items []Plan) string {
	counts, missing := map[State]int64{}, int64(0)
	for _, p := range items {
		counts[p.State]++
		if p.UID == "" {
			missing++
		}
	}
	parts := []string{render.Number(counts[StateUpToDate]) + " up to date"}
	parts = append(parts, render.Parts([]render.Part{
		{N: counts[StateUpgrade], What: "to upgrade"}, {N: counts[StateRelabel], What: "to relabel"}, {N: counts[StateInUse], What: "in use"},
		{N: counts[StateRetained], What: "retained"}, {N: counts[StateRolledBack], What: "rolled back"}, {N: counts[StateDeferred], What: "deferred"},
		{N: counts[StateBlocked], What: "blocked"}, {N: counts[StateUnreferenced], What: "unreferenced"},
	})...)
	all := render.Count(int64(len(items)), "revision", "revisions")
	if missing > 0 {
		all += ", of which " + render.Count(missing, "is", "are") + " missing"
	}
	return all + ": " + strings.Join(parts, ", ")
}

func ownerCell(o reference.Owner) render.Cell {
	if o == (reference.Owner{}) {
		return render.Cell{}
	}
	return render.TextCell(o.Kind + "/" + o.Name)
}

func referencesText(references []decision.ReferenceStatus) []string {
	text := make([]string, len(references))
	for i, r := range references {
		text[i] = r.Kind + "/" + r.Name + r.Path
	}
	return text
}
