package revisionreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/reference"
)

// revisionOrder is the order of the table: revisions that need the user come first.
var revisionOrder = []State{
	StateBlocked, StateDeferred, StateInUse, StateUpgrade, StateRelabel, StateRetained, StateRolledBack, StateUnreferenced, StateUpToDate,
}

// WritePlan writes the number of revisions by version, the revisions with their reasons, and
// a sum. Revisions that are up to date are only counted, unless the table is wide.
func WritePlan(w io.Writer, s render.Style, l PlanList) error {
	versions := render.Table{Header: []string{"VERSION", "FORM", "COUNT"}}
	for _, c := range l.VersionCounts {
		versions.Add(render.Cell{Text: c.Version}, render.Cell{Text: c.Form}, render.NumberCell(c.Count))
	}
	if err := versions.Write(w, s); err != nil {
		return err
	}
	shown := slices.DeleteFunc(slices.Clone(l.Items), func(p Plan) bool { return p.Action == revision.UpToDate && !s.Wide })
	if len(shown) > 0 && len(l.VersionCounts) > 0 {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	if err := writeRevisionItems(w, s, shown); err != nil {
		return err
	}
	var text strings.Builder
	writeVersions(&text, s, l)
	fmt.Fprintf(&text, "\n%s\n", revisionSum(l.Items))
	sum := text.String()
	if len(l.Items) == 0 {
		sum = strings.TrimPrefix(sum, "\n")
	}
	_, err := io.WriteString(w, sum)
	return err
}

// writeRevisionItems writes a table with the reasons below it.
func writeRevisionItems(w io.Writer, s render.Style, items []Plan) error {
	slices.SortStableFunc(items, func(a, b Plan) int {
		return slices.Index(revisionOrder, a.State) - slices.Index(revisionOrder, b.State)
	})
	t := render.Table{Header: []string{"STATE", "NAMESPACE", "OWNER", "VERSION", "TARGET", "REASON", "REVISION"}}
	if s.Wide {
		t.Header = append(t.Header, "FORM", "REFERRERS")
	}
	for _, p := range items {
		row := []render.Cell{
			revisionStates[p.State], {Text: p.Namespace}, {Text: ownerText(p.Owner)}, {Text: render.OrDash(p.Version)}, {Text: render.OrDash(p.Target)},
			{Text: render.OrDash(p.Reason)}, {Text: p.Name},
		}
		if s.Wide {
			row = append(row, render.Cell{Text: render.OrDash(p.Form)}, render.Cell{Text: render.Words(referencesText(p.References))})
		}
		t.Add(row...)
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	for _, p := range items {
		if p.Reason == "" || p.Reason == revision.ReasonRetained && p.RetainedUntil != nil {
			continue
		}
		mark, tone := "!", render.Attention
		if p.Action == revision.Blocked {
			mark, tone = "✗", render.Bad
		}
		fmt.Fprintf(&text, "\n%s/%s\n  %s %s\n", p.Namespace, p.Name, s.Paint(tone, mark+" "+p.Reason+":"), p.Message)
		if what := p.Remedy; what != "" {
			fmt.Fprintf(&text, "    → %s\n", what)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// writeVersions writes which versions can be dropped, and who uses the others.
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
	counts := map[State]int64{}
	for _, p := range items {
		counts[p.State]++
	}
	parts := []string{render.Number(counts[StateUpToDate]) + " up to date"}
	for _, part := range []struct {
		n    int64
		what string
	}{
		{counts[StateUpgrade], "to upgrade"}, {counts[StateRelabel], "to relabel"}, {counts[StateInUse], "in use"},
		{counts[StateRetained], "retained"}, {counts[StateRolledBack], "rolled back"}, {counts[StateDeferred], "deferred"}, {counts[StateBlocked], "blocked"}, {counts[StateUnreferenced], "unreferenced"},
	} {
		if part.n > 0 {
			parts = append(parts, render.Number(part.n)+" "+part.what)
		}
	}
	return render.Count(int64(len(items)), "revision", "revisions") + ": " + strings.Join(parts, ", ")
}

func ownerText(o reference.Owner) string {
	if o == (reference.Owner{}) {
		return "-"
	}
	return o.Kind + "/" + o.Name
}

func referencesText(references []revision.ReferenceStatus) []string {
	text := make([]string, len(references))
	for i, r := range references {
		text[i] = r.Kind + "/" + r.Name + r.Path
	}
	return text
}
