package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

var results = map[Result]cell{
	Succeeded: {"✓ Succeeded", good},
	NoChange:  {"✓ NoChange", faint},
	Partial:   {"◐ Partial", attention},
	Failed:    {"✗ Failed", bad},
	Blocked:   {"✗ Blocked", bad},
	Unknown:   {"? Unknown", bad},

	Terminating: {"- Terminating", faint},
}

// WriteRuns writes a table of what became of each definition, and names what
// failed.
func WriteRuns(w io.Writer, s Style, runs []CRDRunReport, folded Folded) error {
	if err := runTable(s, runs).write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	for _, r := range runs {
		named := int64(0) // objects, not the definition itself
		for i, f := range r.Failures {
			if f.Name != r.Name {
				named++
			}
			if i == 0 {
				fmt.Fprintf(&text, "\n%s\n", r.Name)
			}
			fmt.Fprintf(&text, "  %s %s\n", s.paint(bad, "✗ "+failedName(f.Namespace, f.Name)+":"), f.Reason)
		}
		if more := r.Objects.Failed + r.Objects.Deferred - named; named > 0 && more > 0 {
			fmt.Fprintf(&text, "  … and %s\n", Count(more, "more object", "more objects"))
		}
	}
	if folded.Clean > 0 {
		fmt.Fprintf(&text, "%s: nothing to do\n", Count(folded.Clean, "clean customresourcedefinition", "clean customresourcedefinitions"))
	}
	if folded.Lacking > 0 {
		fmt.Fprintf(&text, "%s: not begun, because permissions are missing\n", CRDs(folded.Lacking))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// outcome is a column of the table of runs.
type outcome struct {
	name string
	// seldom means that the column is left out where no row has any, unless the table
	// is wide.
	seldom bool
	of     func(Objects) int64
}

// outcomes are all of them: in each row they add up to the objects.
var outcomes = []outcome{
	{"MIGRATED", false, func(o Objects) int64 { return o.Migrated }},
	{"UNCHANGED", false, func(o Objects) int64 { return o.Unchanged }},
	{"SKIPPED", false, func(o Objects) int64 { return o.Skipped }},
	{"GONE", true, func(o Objects) int64 { return o.Gone }},
	{"DEFERRED", true, func(o Objects) int64 { return o.Deferred }},
	{"FAILED", false, func(o Objects) int64 { return o.Failed }},
}

func (o outcome) shown(s Style, runs []CRDRunReport) bool {
	return !o.seldom || s.Wide || slices.ContainsFunc(runs, func(r CRDRunReport) bool { return o.of(r.Objects) > 0 })
}

func runTable(s Style, runs []CRDRunReport) *table {
	shown := slices.DeleteFunc(slices.Clone(outcomes), func(o outcome) bool { return !o.shown(s, runs) })
	t := &table{header: []string{"NAME", "RESULT", "STORAGE", "OBJECTS"}}
	for _, o := range shown {
		t.header = append(t.header, o.name)
	}
	t.header = append(t.header, "TRIMMED", "TIME")
	if s.Wide {
		t.header = append(t.header, "REQUESTS")
	}
	for _, r := range runs {
		row := []cell{{text: r.Name}, results[r.Result], {text: orDash(r.StorageVersion)}, number(r.Objects.Total)}
		for _, o := range shown {
			c := number(o.of(r.Objects))
			if o.name == "FAILED" && o.of(r.Objects) > 0 {
				c.tone = bad
			}
			row = append(row, c)
		}
		row = append(row, cell{text: yesNo(r.Trimmed)}, cell{text: Duration(r.DurationSeconds)})
		if s.Wide {
			row = append(row, number(r.Requests))
		}
		t.add(row...)
	}
	return t
}

// Summary is one line about one definition.
func Summary(r CRDRunReport) string {
	parts := []string{string(r.Result)}
	for _, c := range []struct {
		n    int64
		what string
	}{
		{r.Objects.Migrated, "migrated"}, {r.Objects.Unchanged, "unchanged"}, {r.Objects.Skipped, "skipped"},
		{r.Objects.Gone, "gone"}, {r.Objects.Deferred, "deferred"}, {r.Objects.Failed, "failed"},
	} {
		if c.n > 0 {
			parts = append(parts, Number(c.n)+" "+c.what)
		}
	}
	for _, c := range []struct {
		n    int64
		what string
	}{
		{r.ManagedFields.Cleaned, "managedFields cleaned"}, {r.ManagedFields.Deferred, "managedFields deferred"},
		{r.ManagedFields.Failed, "managedFields failed"},
	} {
		if c.n > 0 {
			parts = append(parts, Number(c.n)+" "+c.what)
		}
	}
	if r.Trimmed {
		parts = append(parts, "storedVersions trimmed to "+r.StorageVersion)
	}
	return strings.Join(append(parts, Duration(r.DurationSeconds)), ", ")
}

// Duration is precise to the tenth of a second where that matters.
func Duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func failedName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func number(n int64) cell { return cell{text: Number(n)} }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
