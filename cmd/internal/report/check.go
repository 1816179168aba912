package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

var checkVerdicts = map[string]cell{
	"Safe":    {"✓ Safe", good},
	"Refused": {"✗ Refused", bad},
	"Unsafe":  {"✗ Unsafe", bad},
	"Unknown": {"? Unknown", attention},
}

// reasonGlyphs mark reasons by what they amount to; a note is no cause.
var reasonGlyphs = map[string]cell{
	"Safe":    {"·", faint},
	"Refused": {"✗", bad},
	"Unsafe":  {"✗", bad},
	"Unknown": {"?", attention},
}

// WriteChecks writes a table of verdicts, their reasons and remedies, and a sum.
// What must not be released comes first.
func WriteChecks(w io.Writer, s Style, checks []CRDCheck) error {
	checks = slices.Clone(checks)
	slices.SortStableFunc(checks, func(a, b CRDCheck) int { return verdictOrder(a) - verdictOrder(b) })
	t := table{header: []string{"NAME", "VERDICT", "REMOVED"}}
	for _, c := range checks {
		t.add(cell{text: c.Name}, checkVerdicts[c.Verdict], cell{text: words(c.RemovedVersions)})
	}
	if err := t.write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	counts := map[string]int{}
	for _, c := range checks {
		counts[c.Verdict]++
		for i, r := range c.Reasons {
			if i == 0 {
				fmt.Fprintf(&text, "\n%s\n", c.Name)
			}
			glyph := reasonGlyphs[string(r.Verdict)]
			fmt.Fprintf(&text, "  %s %s\n    → %s\n", s.paint(glyph.tone, glyph.text+" "+r.Reason+":"), r.Message, r.Remedy)
		}
	}
	fmt.Fprintf(&text, "\n%s: %d safe, %d refused, %d unsafe, %d unknown\n",
		Count(int64(len(checks)), "customresourcedefinition", "customresourcedefinitions"),
		counts["Safe"], counts["Refused"], counts["Unsafe"], counts["Unknown"])
	_, err := io.WriteString(w, text.String())
	return err
}

func verdictOrder(c CRDCheck) int {
	return slices.Index([]string{"Refused", "Unsafe", "Unknown", "Safe"}, c.Verdict)
}
