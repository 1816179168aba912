package resourcereport

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/report"
)

var states = map[string]report.Cell{
	"Clean":   {Text: "✓ Clean", Tone: report.Good},
	"Ready":   {Text: "● Ready", Tone: report.Attention},
	"Blocked": {Text: "✗ Blocked", Tone: report.Bad},
	"Unknown": {Text: "? Unknown", Tone: report.Bad},
}

var results = map[Result]report.Cell{
	Succeeded: {Text: "✓ Succeeded", Tone: report.Good},
	NoChange:  {Text: "✓ NoChange", Tone: report.Faint},
	Partial:   {Text: "◐ Partial", Tone: report.Attention},
	Failed:    {Text: "✗ Failed", Tone: report.Bad},
	Blocked:   {Text: "✗ Blocked", Tone: report.Bad},
}

var outcomes = map[Outcome]report.Cell{
	Proven:      {Text: "✓ Proven", Tone: report.Good},
	Uniform:     {Text: "✓ Uniform", Tone: report.Good},
	NotProven:   {Text: "✗ NotProven", Tone: report.Bad},
	NotVerified: {Text: "? NotVerified", Tone: report.Bad},
}

// WritePlans writes a table of plans, their blockers with remedies, and a sum.
func WritePlans(w io.Writer, s report.Style, plans []Plan) error {
	t := report.Table{Header: []string{"NAME", "STATE", "VERSION", "OBJECTS"}}
	var below strings.Builder
	counts := map[string]int64{}
	objects, uncounted := int64(0), false
	for _, p := range plans {
		t.Add(report.Cell{Text: p.Name}, states[p.State], report.Cell{Text: report.OrDash(p.Version)}, objectsCell(p.Objects))
		counts[p.State]++
		switch {
		case p.State != "Ready":
		case p.Objects == nil:
			uncounted = true
		default:
			objects += *p.Objects
		}
		for i, b := range p.Blockers {
			if i == 0 {
				fmt.Fprintf(&below, "\n%s\n", p.Name)
			}
			fmt.Fprintf(&below, "  %s %s\n    → %s\n", s.Paint(report.Bad, "✗ "+b.Reason+":"), b.Message, b.Remedy)
		}
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	sum := fmt.Sprintf("%s: %d clean, %d ready, %d blocked", report.Count(int64(len(plans)), "resource", "resources"), counts["Clean"], counts["Ready"], counts["Blocked"])
	if counts["Unknown"] > 0 {
		sum += fmt.Sprintf(", %d unknown", counts["Unknown"])
	}
	if counts["Ready"] > 0 {
		least := ""
		if uncounted {
			least = "at least "
		}
		sum += "; a run writes " + least + report.Count(objects, "object", "objects")
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n", below.String(), sum)
	return err
}

func objectsCell(n *int64) report.Cell {
	if n == nil {
		return report.Cell{Text: "?"}
	}
	return report.NumberCell(*n)
}

// WriteRuns writes a table with the result of each resource, and the failures below it.
func WriteRuns(w io.Writer, s report.Style, runs []Run) error {
	t := report.Table{Header: []string{"NAME", "RESULT", "OBJECTS", "MIGRATED", "UNCHANGED", "SKIPPED", "GONE", "FAILED", "TIME"}}
	var below strings.Builder
	for _, r := range runs {
		o := r.Objects
		t.Add(report.Cell{Text: r.Name}, results[r.Result], report.NumberCell(o.Total), report.NumberCell(o.Migrated), report.NumberCell(o.Unchanged),
			report.NumberCell(o.Skipped), report.NumberCell(o.Gone), report.NumberCell(o.Failed+o.Deferred), report.Cell{Text: report.Duration(r.DurationSeconds)})
		named := int64(0)
		for i, f := range r.Failures {
			if i == 0 {
				fmt.Fprintf(&below, "\n%s\n", r.Name)
			}
			if f.Name != r.Name {
				named++
			}
			fmt.Fprintf(&below, "  %s %s\n", s.Paint(report.Bad, "✗ "+strings.TrimPrefix(f.Namespace+"/"+f.Name, "/")+":"), f)
		}
		if more := o.Failed + o.Deferred - named; named > 0 && more > 0 {
			fmt.Fprintf(&below, "  … and %s\n", report.Count(more, "more object", "more objects"))
		}
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	_, err := io.WriteString(w, below.String())
	return err
}

// Summary returns the result of one resource in one line.
func Summary(r Run) string {
	parts := append([]string{string(r.Result)}, report.Outcomes(r.Objects.Counts)...)
	return strings.Join(append(parts, report.Duration(r.DurationSeconds)), ", ")
}

// WriteVerifications writes a table of the forms in which objects are stored, and why a resource is not proven.
func WriteVerifications(w io.Writer, s report.Style, items []Verification) error {
	t := report.Table{Header: []string{"NAME", "RESULT", "OBJECTS", "STORED AS", "UNREADABLE"}}
	var below strings.Builder
	for _, v := range items {
		t.Add(report.Cell{Text: v.Name}, outcomes[v.Result], report.NumberCell(v.Objects), report.Cell{Text: report.Tally(v.ByForm)}, report.NumberCell(v.Unreadable))
		if v.Message != "" {
			fmt.Fprintf(&below, "\n%s\n  %s\n    → %s\n", v.Name, s.Paint(report.Bad, v.Message), v.Remedy)
		}
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	_, err := io.WriteString(w, below.String())
	return err
}
