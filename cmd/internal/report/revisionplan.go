package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/reference"
)

// revisionOrder is that of the table: what a user has to look at comes first.
var revisionOrder = []RevisionState{
	StateBlocked, StateDeferred, StateHeld, StateUpgrade, StateRelabel, StateRetained, StateRolledBack, StateUnreferenced, StateUpToDate,
}

// WriteRevisionPlan writes the census, what is to be done and why, and a sum. What is
// up to date is only counted, unless everything is asked for.
func WriteRevisionPlan(w io.Writer, s Style, l RevisionPlanList) error {
	census := table{header: []string{"VERSION", "FORM", "COUNT"}}
	for _, c := range l.VersionCounts {
		census.add(cell{text: c.Version}, cell{text: c.Form}, number(c.Count))
	}
	if err := census.write(w, s); err != nil {
		return err
	}
	shown := slices.DeleteFunc(slices.Clone(l.Items), func(p RevisionPlan) bool { return p.Action == revision.UpToDate && !s.Wide })
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
	said := text.String()
	if len(l.Items) == 0 {
		said = strings.TrimPrefix(said, "\n")
	}
	_, err := io.WriteString(w, said)
	return err
}

// writeRevisionItems writes a table, and the reasons below it.
func writeRevisionItems(w io.Writer, s Style, items []RevisionPlan) error {
	slices.SortStableFunc(items, func(a, b RevisionPlan) int {
		return slices.Index(revisionOrder, a.State) - slices.Index(revisionOrder, b.State)
	})
	t := table{header: []string{"STATE", "NAMESPACE", "OWNER", "VERSION", "TARGET", "REASON", "REVISION"}}
	if s.Wide {
		t.header = append(t.header, "FORM", "REFERRERS")
	}
	for _, p := range items {
		row := []cell{
			revisionStates[p.State], {text: p.Namespace}, {text: ownerText(p.Owner)}, {text: orDash(p.Version)}, {text: orDash(p.Target)},
			{text: orDash(p.Reason)}, {text: p.Name},
		}
		if s.Wide {
			row = append(row, cell{text: orDash(p.Form)}, cell{text: words(placesText(p.References))})
		}
		t.add(row...)
	}
	if err := t.write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	for _, p := range items {
		if p.Reason == "" || p.Reason == revision.ReasonRetained && p.RetainedUntil != nil {
			continue
		}
		mark, tone := "!", attention
		if p.Action == revision.Blocked {
			mark, tone = "✗", bad
		}
		fmt.Fprintf(&text, "\n%s/%s\n  %s %s\n", p.Namespace, p.Name, s.paint(tone, mark+" "+p.Reason+":"), p.Message)
		if what := p.Remedy; what != "" {
			fmt.Fprintf(&text, "    → %s\n", what)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// writeVersions says which can be dropped, and what holds the others.
func writeVersions(text *strings.Builder, s Style, l RevisionPlanList) {
	if len(l.DroppableVersions)+len(l.VersionsInUse) > 0 {
		text.WriteString("\n")
	}
	for _, v := range l.DroppableVersions {
		fmt.Fprintf(text, "%s nothing is left at it, it can be dropped\n", s.paint(good, "✓ "+v+":"))
	}
	for _, v := range l.VersionsInUse {
		fmt.Fprintf(text, "%s %s\n", s.paint(attention, "● "+v.Version+":"), Count(v.Count, "holds it", "hold it"))
		for _, by := range v.UsedBy {
			fmt.Fprintf(text, "    %s\n", by)
		}
		if more := v.Count - int64(len(v.UsedBy)); more > 0 {
			fmt.Fprintf(text, "    … and %s more\n", Number(more))
		}
	}
}

func revisionSum(items []RevisionPlan) string {
	counts := map[RevisionState]int64{}
	for _, p := range items {
		counts[p.State]++
	}
	parts := []string{Number(counts[StateUpToDate]) + " up to date"}
	for _, part := range []struct {
		n    int64
		what string
	}{
		{counts[StateUpgrade], "to upgrade"}, {counts[StateRelabel], "to relabel"}, {counts[StateHeld], "held"},
		{counts[StateRetained], "retained"}, {counts[StateRolledBack], "rolled back"}, {counts[StateDeferred], "deferred"}, {counts[StateBlocked], "blocked"}, {counts[StateUnreferenced], "unreferenced"},
	} {
		if part.n > 0 {
			parts = append(parts, Number(part.n)+" "+part.what)
		}
	}
	return Count(int64(len(items)), "revision", "revisions") + ": " + strings.Join(parts, ", ")
}

func ownerText(o reference.Owner) string {
	if o == (reference.Owner{}) {
		return "-"
	}
	return o.Kind + "/" + o.Name
}

func placesText(places []revision.ReferenceStatus) []string {
	text := make([]string, len(places))
	for i, p := range places {
		text[i] = p.Kind + "/" + p.Name + p.Path
	}
	return text
}
