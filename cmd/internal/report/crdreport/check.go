package crdreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/report"
)

var checkResults = map[string]report.Cell{
	"Safe":    {Text: "✓ Safe", Tone: report.Good},
	"Refused": {Text: "✗ Refused", Tone: report.Bad},
	"Unsafe":  {Text: "✗ Unsafe", Tone: report.Bad},
	"Unknown": {Text: "? Unknown", Tone: report.Attention},
}

// reasonGlyphs mark a reason by the result that it leads to. A note leads to none.
var reasonGlyphs = map[string]report.Cell{
	"Safe":    {Text: "·", Tone: report.Faint},
	"Refused": {Text: "✗", Tone: report.Bad},
	"Unsafe":  {Text: "✗", Tone: report.Bad},
	"Unknown": {Text: "?", Tone: report.Attention},
}

// WriteChecks writes a table of results, their reasons and remedies, and a sum. CRDs that
// must not be released come first.
func WriteChecks(w io.Writer, s report.Style, checks []Check) error {
	checks = slices.Clone(checks)
	slices.SortStableFunc(checks, func(a, b Check) int { return resultOrder(a) - resultOrder(b) })
	t := report.Table{Header: []string{"NAME", "RESULT", "REMOVED"}}
	for _, c := range checks {
		t.Add(report.Cell{Text: c.Name}, checkResults[c.Result], report.Cell{Text: report.Words(c.RemovedVersions)})
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	counts := map[string]int{}
	for _, c := range checks {
		counts[c.Result]++
		for i, r := range c.Reasons {
			if i == 0 {
				fmt.Fprintf(&text, "\n%s\n", c.Name)
			}
			glyph := reasonGlyphs[string(r.Result)]
			fmt.Fprintf(&text, "  %s %s\n    → %s\n", s.Paint(glyph.Tone, glyph.Text+" "+r.Reason+":"), r.Message, r.Remedy)
		}
	}
	fmt.Fprintf(&text, "\n%s: %d safe, %d refused, %d unsafe, %d unknown\n",
		report.Count(int64(len(checks)), "customresourcedefinition", "customresourcedefinitions"),
		counts["Safe"], counts["Refused"], counts["Unsafe"], counts["Unknown"])
	_, err := io.WriteString(w, text.String())
	return err
}

func resultOrder(c Check) int {
	return slices.Index([]string{"Refused", "Unsafe", "Unknown", "Safe"}, c.Result)
}
