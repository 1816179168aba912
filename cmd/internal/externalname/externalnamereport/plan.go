package externalnamereport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/internal/quote"
)

var actions = map[fleet.Action]render.Cell{
	fleet.Skip:   {Text: "✗ Skip", Tone: render.Bad},
	fleet.Resume: {Text: "● Resume", Tone: render.Attention},
	fleet.Rename: {Text: "● Rename", Tone: render.Attention},
	fleet.None:   {Text: "✓ None", Tone: render.Good},
}

// actionOrder is the order of the table: what needs the user comes first.
var actionOrder = []fleet.Action{fleet.Skip, fleet.Resume, fleet.Rename, fleet.None}

// columnBytes bounds a name in a column.
const columnBytes = 60

var planTable = render.Table[Plan]{
	{Name: "Action", Cell: func(p Plan) render.Cell { return actions[p.Action] }},
	{Name: "Namespace", Cell: func(p Plan) render.Cell { return render.TextCell(p.Namespace) }},
	{Name: "Name", Key: true, Cell: func(p Plan) render.Cell { return render.TextCell(p.Name) }},
	{Name: "Class", Cell: classCell},
	{Name: "Current", Cell: func(p Plan) render.Cell { return nameCell(p.Current) }},
	{Name: "Proposed", Cell: func(p Plan) render.Cell { return nameCell(p.Proposed) }},
	{Name: "Reason", Cell: func(p Plan) render.Cell { return render.TextCell(p.Reason) }},
	{Name: "Owner", Wide: true, Cell: func(p Plan) render.Cell { return render.TextCell(p.Owner) }},
}

// WritePlan writes a table, the reasons below it, and a sum. Managed resources that need nothing are only
// counted, unless the table is wide.
func WritePlan(w io.Writer, s render.Style, items []Plan) error {
	shown := slices.DeleteFunc(slices.Clone(items), func(p Plan) bool { return p.Action == fleet.None && !s.Wide })
	slices.SortStableFunc(shown, func(a, b Plan) int {
		return slices.Index(actionOrder, a.Action) - slices.Index(actionOrder, b.Action)
	})
	var text strings.Builder
	text.WriteString(planTable.Text(s, shown))
	text.WriteString(skippedText(s, shown))
	if len(shown) > 0 {
		text.WriteString("\n")
	}
	fmt.Fprintf(&text, "%s\n", planSum(items))
	_, err := io.WriteString(w, text.String())
	return err
}

// skippedText says a cause once, with the managed resources that have it.
func skippedText(s render.Style, shown []Plan) string {
	var causes []render.Problem
	objects := map[render.Problem][]string{}
	for _, p := range shown {
		if p.Reason == "" || p.Action == fleet.None {
			continue
		}
		if objects[p.Problem] == nil {
			causes = append(causes, p.Problem)
		}
		objects[p.Problem] = append(objects[p.Problem], render.ObjectName(p.Namespace, p.Name))
	}
	var text strings.Builder
	for _, cause := range causes {
		about := objects[cause][0]
		if more := len(objects[cause]) - 1; more > 0 {
			about += fmt.Sprintf(" and %s", render.Count(int64(more), "more managed resource", "more managed resources"))
		}
		text.WriteString(render.Below(about, cause.Lines(s, render.MarkBad)))
	}
	return text.String()
}

func classCell(p Plan) render.Cell {
	if p.Form == "" {
		return render.TextCell(p.Class)
	}
	return render.TextCell(fmt.Sprintf("%s{%s}", p.Class, p.Form))
}

// nameCell shows outer spaces and control characters.
func nameCell(name string) render.Cell {
	if quoted := fmt.Sprintf("%q", name); quoted != `"`+name+`"` || strings.TrimSpace(name) != name {
		name = quoted
	}
	return render.TextCell(quote.Clip(name, columnBytes))
}

func planSum(items []Plan) string {
	counts := map[fleet.Action]int64{}
	for _, p := range items {
		counts[p.Action]++
	}
	parts := []string{render.Number(counts[fleet.None]) + " need nothing"}
	parts = append(parts, render.Parts([]render.Part{
		{N: counts[fleet.Rename], What: "to rename"}, {N: counts[fleet.Resume], What: "to resume"}, {N: counts[fleet.Skip], What: "skipped"},
	})...)
	return render.Count(int64(len(items)), "managed resource", "managed resources") + ": " + strings.Join(parts, ", ")
}
