package resourcereport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

var states = map[string]render.Cell{
	"Clean":   {Text: "✓ Clean", Tone: render.Good},
	"Ready":   {Text: "● Ready", Tone: render.Attention},
	"Blocked": {Text: "✗ Blocked", Tone: render.Bad},
	"Unknown": {Text: "? Unknown", Tone: render.Unsure},
}

var results = map[Result]render.Cell{
	Succeeded: {Text: "✓ Succeeded", Tone: render.Good},
	Accepted:  {Text: "● Accepted", Tone: render.Attention},
	NoChange:  {Text: "✓ NoChange", Tone: render.Faint},
	Partial:   {Text: "◐ Partial", Tone: render.Attention},
	Failed:    {Text: "✗ Failed", Tone: render.Bad},
	Blocked:   {Text: "✗ Blocked", Tone: render.Bad},
}

var outcomes = map[Outcome]render.Cell{
	Proven:      {Text: "✓ Proven", Tone: render.Good},
	Uniform:     {Text: "✓ Uniform", Tone: render.Good},
	NotProven:   {Text: "✗ NotProven", Tone: render.Bad},
	NotVerified: {Text: "? NotVerified", Tone: render.Unsure},
}

var planTable = render.Table[Plan]{
	{Name: "Name", Cell: func(p Plan) render.Cell { return render.TextCell(p.Name) }},
	{Name: "State", Cell: func(p Plan) render.Cell { return states[p.State] }},
	{Name: "Version", Cell: func(p Plan) render.Cell { return render.TextCell(p.Version) }},
	{Name: "Objects", Cell: func(p Plan) render.Cell { return render.CountCell(p.Objects) }},
}

// WritePlans writes a table of plans, their blockers with remedies, and a sum.
func WritePlans(w io.Writer, s render.Style, plans []Plan) error {
	var text strings.Builder
	text.WriteString(planTable.Text(s, plans))
	for _, p := range plans {
		var lines strings.Builder
		for _, b := range p.Blockers {
			lines.WriteString(b.Lines(s, render.MarkBad))
		}
		text.WriteString(render.Below(p.Name, lines.String()))
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n", text.String(), planSum(plans))
	return err
}

// planSum returns the sum of the plans. It has no number of objects if some were not counted.
func planSum(plans []Plan) string {
	counts := map[string]int64{}
	objects, uncounted := int64(0), false
	for _, p := range plans {
		counts[p.State]++
		switch {
		case p.State != "Ready":
		case p.Objects == nil:
			uncounted = true
		default:
			objects += *p.Objects
		}
	}
	sum := fmt.Sprintf("%s: %d clean, %d ready, %d blocked", render.Count(int64(len(plans)), "resource", "resources"), counts["Clean"], counts["Ready"], counts["Blocked"])
	if counts["Unknown"] > 0 {
		sum += fmt.Sprintf(", %d unknown", counts["Unknown"])
	}
	if counts["Ready"] > 0 {
		least := ""
		if uncounted {
			least = "at least "
		}
		sum += "; a run writes " + least + render.Count(objects, "object", "objects")
	}
	return sum
}

var runTable = render.Table[Run]{
	{Name: "Name", Cell: func(r Run) render.Cell { return render.TextCell(r.Name) }},
	{Name: "Result", Cell: func(r Run) render.Cell { return results[r.Result] }},
	{Name: "Objects", Cell: func(r Run) render.Cell { return render.NumberCell(r.Objects.Total) }},
	{Name: "Migrated", Cell: func(r Run) render.Cell { return render.NumberCell(r.Objects.Migrated) }},
	{Name: "Unchanged", Cell: func(r Run) render.Cell { return render.NumberCell(r.Objects.Unchanged) }},
	{Name: "Skipped", Cell: func(r Run) render.Cell { return render.NumberCell(r.Objects.Skipped) }},
	{Name: "Gone", Cell: func(r Run) render.Cell { return render.NumberCell(r.Objects.Gone) }},
	{Name: "Failed", Cell: func(r Run) render.Cell { return render.NumberCell(r.Objects.Failed + r.Objects.Deferred) }},
	{Name: "Time", Cell: func(r Run) render.Cell { return render.DurationCell(r.DurationSeconds) }},
}

// dryRunTable has the columns of dry runs.
var dryRunTable = render.Table[Run]{
	{Name: "Name", Cell: func(r Run) render.Cell { return render.TextCell(r.Name) }},
	{Name: "Result", Cell: func(r Run) render.Cell { return results[r.Result] }},
	{Name: "Objects", Cell: func(r Run) render.Cell { return render.NumberCell(r.Objects.Total) }},
	{Name: "Accepted", Cell: func(r Run) render.Cell { return render.NumberCell(r.Objects.Skipped) }},
	{Name: "Refused", Cell: func(r Run) render.Cell { return render.NumberCell(r.Objects.Failed + r.Objects.Deferred) }},
	{Name: "Time", Cell: func(r Run) render.Cell { return render.DurationCell(r.DurationSeconds) }},
}

// WriteRuns writes a table with the result of each resource, and the failures below it.
func WriteRuns(w io.Writer, s render.Style, runs []Run) error {
	var text strings.Builder
	table := runTable
	if slices.ContainsFunc(runs, func(r Run) bool { return r.DryRun }) {
		table = dryRunTable
	}
	text.WriteString(table.Text(s, runs))
	for _, r := range runs {
		text.WriteString(render.FailureLines(s, r.Name, r.Failures, r.Objects.Counts))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// Summary returns the result of one resource in one line.
func Summary(r Run) string {
	parts := append([]string{string(r.Result)}, render.Outcomes(r.Objects.Counts)...)
	return strings.Join(append(parts, render.Duration(r.DurationSeconds)), ", ")
}

var verifyTable = render.Table[Verification]{
	{Name: "Name", Cell: func(v Verification) render.Cell { return render.TextCell(v.Name) }},
	{Name: "Result", Cell: func(v Verification) render.Cell { return outcomes[v.Result] }},
	{Name: "Objects", Cell: func(v Verification) render.Cell { return render.NumberCell(v.Objects) }},
	{Name: "Stored as", Cell: func(v Verification) render.Cell { return render.TallyCell(v.ByForm) }},
	{Name: "Unreadable", Cell: func(v Verification) render.Cell { return render.NumberCell(v.Unreadable) }},
}

// WriteVerifications writes a table of the forms in which objects are stored, and why a resource is not proven.
func WriteVerifications(w io.Writer, s render.Style, items []Verification) error {
	var text strings.Builder
	text.WriteString(verifyTable.Text(s, items))
	for _, v := range items {
		if v.Message != "" {
			text.WriteString(render.Below(v.Name, s.Wrap(render.Cell{Text: "  ✗ ", Tone: render.Bad}, 4, v.Message)+s.RemedyLines(4, v.Remedy)))
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}
