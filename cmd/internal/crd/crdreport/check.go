package crdreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
)

var checkResults = map[string]render.Cell{
	"Safe":    {Text: "✓ Safe", Tone: render.Good},
	"Refused": {Text: "✗ Refused", Tone: render.Bad},
	"Unsafe":  {Text: "✗ Unsafe", Tone: render.Bad},
	"Unknown": {Text: "? Unknown", Tone: render.Attention},
}

// reasonMarks has the mark of a reason for each result that the reason leads to. A Safe reason is a note.
var reasonMarks = map[releasecheck.Result]render.Cell{
	releasecheck.Safe: render.MarkNote, releasecheck.Refused: render.MarkBad, releasecheck.Unsafe: render.MarkBad,
	releasecheck.Unknown: {Text: "?", Tone: render.Attention},
}

var checkTable = render.Table[Check]{
	{Name: "Name", Cell: func(c Check) render.Cell { return render.CodeCell(c.Name) }},
	{Name: "Result", Cell: func(c Check) render.Cell { return checkResults[c.Result] }},
	{Name: "Removed", Cell: func(c Check) render.Cell { return render.WordsCell(c.RemovedVersions) }},
}

// WriteChecks writes a table of results, their reasons and remedies, and a sum. CRDs that
// must not be released come first.
func WriteChecks(w io.Writer, s render.Style, checks []Check) error {
	checks = slices.Clone(checks)
	slices.SortStableFunc(checks, func(a, b Check) int { return resultOrder(a) - resultOrder(b) })
	var text strings.Builder
	text.WriteString(checkTable.Text(s, checks))
	counts := map[string]int{}
	for _, c := range checks {
		counts[c.Result]++
		var lines strings.Builder
		for _, r := range c.Reasons {
			lines.WriteString(r.Lines(s, reasonMarks[r.Result]))
		}
		text.WriteString(render.Below(c.Name, lines.String()))
	}
	fmt.Fprintf(&text, "\n%s: %d safe, %d refused, %d unsafe, %d unknown\n",
		render.Count(int64(len(checks)), "customresourcedefinition", "customresourcedefinitions"),
		counts["Safe"], counts["Refused"], counts["Unsafe"], counts["Unknown"])
	_, err := io.WriteString(w, text.String())
	return err
}

func resultOrder(c Check) int {
	return slices.Index([]string{"Refused", "Unsafe", "Unknown", "Safe"}, c.Result)
}
