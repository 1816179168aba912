package resourcereport

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

var states = map[string]render.Cell{
	"Clean":   {Text: "✓ Clean", Tone: render.Good},
	"Ready":   {Text: "● Ready", Tone: render.Attention},
	"Blocked": {Text: "✗ Blocked", Tone: render.Bad},
	"Unknown": {Text: "? Unknown", Tone: render.Bad},
}

var results = map[Result]render.Cell{
	Succeeded: {Text: "✓ Succeeded", Tone: render.Good},
	NoChange:  {Text: "✓ NoChange", Tone: render.Faint},
	Partial:   {Text: "◐ Partial", Tone: render.Attention},
	Failed:    {Text: "✗ Failed", Tone: render.Bad},
	Blocked:   {Text: "✗ Blocked", Tone: render.Bad},
}

var outcomes = map[Outcome]render.Cell{
	Proven:      {Text: "✓ Proven", Tone: render.Good},
	Uniform:     {Text: "✓ Uniform", Tone: render.Good},
	NotProven:   {Text: "✗ NotProven", Tone: render.Bad},
	NotVerified: {Text: "? NotVerified", Tone: render.Bad},
}

// WritePlans writes a table of plans, their blockers with remedies, and a sum.
func WritePlans(w io.Writer, s render.Style, plans []Plan) error {
	t := render.Table{Header: []string{"NAME", "STATE", "VERSION", "OBJECTS"}}
	var below strings.Builder
	counts := map[string]int64{}
	objects, uncounted := int64(0), false
	for _, p := range plans {
		t.Add(render.Cell{Text: p.Name}, states[p.State], render.Cell{Text: render.OrDash(p.Version)}, objectsCell(p.Objects))
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
			fmt.Fprintf(&below, "  %s %s\n    → %s\n", s.Paint(render.Bad, "✗ "+b.Reason+":"), b.Message, b.Remedy)
		}
	}
	if err := t.Write(w, s); err != nil {
		return err
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
	_, err := fmt.Fprintf(w, "%s\n%s\n", below.String(), sum)
	return err
}

func objectsCell(n *int64) render.Cell {
	if n == nil {
		return render.Cell{Text: "?"}
	}
	return render.NumberCell(*n)
}

// WriteRuns writes a table with the result of each resource, and the failures below it.
func WriteRuns(w io.Writer, s render.Style, runs []Run) error {
	t := render.Table{Header: []string{"NAME", "RESULT", "OBJECTS", "MIGRATED", "UNCHANGED", "SKIPPED", "GONE", "FAILED", "TIME"}}
	var below strings.Builder
	for _, r := range runs {
		o := r.Objects
		t.Add(render.Cell{Text: r.Name}, results[r.Result], render.NumberCell(o.Total), render.NumberCell(o.Migrated), render.NumberCell(o.Unchanged),
			render.NumberCell(o.Skipped), render.NumberCell(o.Gone), render.NumberCell(o.Failed+o.Deferred), render.Cell{Text: render.Duration(r.DurationSeconds)})
		named := int64(0)
		for i, f := range r.Failures {
			if i == 0 {
				fmt.Fprintf(&below, "\n%s\n", r.Name)
			}
			if f.Name != r.Name {
				named++
			}
			fmt.Fprintf(&below, "  %s %s\n", s.Paint(render.Bad, "✗ "+strings.TrimPrefix(f.Namespace+"/"+f.Name, "/")+":"), f)
		}
		if more := o.Failed + o.Deferred - named; named > 0 && more > 0 {
			fmt.Fprintf(&below, "  … and %s\n", render.Count(more, "more object", "more objects"))
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
	parts := append([]string{string(r.Result)}, render.Outcomes(r.Objects.Counts)...)
	return strings.Join(append(parts, render.Duration(r.DurationSeconds)), ", ")
}

// WriteVerifications writes a table of the forms in which objects are stored, and why a resource is not proven.
func WriteVerifications(w io.Writer, s render.Style, items []Verification) error {
	t := render.Table{Header: []string{"NAME", "RESULT", "OBJECTS", "STORED AS", "UNREADABLE"}}
	var below strings.Builder
	for _, v := range items {
		t.Add(render.Cell{Text: v.Name}, outcomes[v.Result], render.NumberCell(v.Objects), render.Cell{Text: render.Tally(v.ByForm)}, render.NumberCell(v.Unreadable))
		if v.Message != "" {
			fmt.Fprintf(&below, "\n%s\n  %s\n    → %s\n", v.Name, s.Paint(render.Bad, v.Message), v.Remedy)
		}
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	_, err := io.WriteString(w, below.String())
	return err
}
