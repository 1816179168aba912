package report

import (
	"fmt"
	"io"
	"strings"
	"time"
)

var results = map[Result]cell{
	Succeeded: {"✓ Succeeded", good},
	Nothing:   {"✓ Nothing", faint},
	Partial:   {"◐ Partial", attention},
	Failed:    {"✗ Failed", bad},
	Blocked:   {"✗ Blocked", bad},
	Unknown:   {"? Unknown", bad},

	Terminating: {"- Terminating", faint},
}

// WriteRuns writes a table of what became of each definition, and names what
// failed. idle counts definitions that are left out, since nothing was to do.
func WriteRuns(w io.Writer, s Style, runs []CRDRunReport, idle int) error {
	t := table{header: []string{"NAME", "RESULT", "STORAGE", "OBJECTS", "MIGRATED", "UNCHANGED", "FAILED", "TRIMMED", "TIME"}}
	if s.Wide {
		t.header = append(t.header, "SKIPPED", "GONE", "DEFERRED", "REQUESTS")
	}
	for _, r := range runs {
		row := []cell{
			{text: r.Name}, results[r.Result], {text: orDash(r.StorageVersion)}, number(r.Objects.Total), number(r.Objects.Migrated),
			number(r.Objects.Unchanged), failed(r.Objects.Failed), {text: yesNo(r.Trimmed)}, {text: Duration(r.DurationSeconds)},
		}
		if s.Wide {
			row = append(row, number(r.Objects.Skipped), number(r.Objects.Gone), number(r.Objects.Deferred), number(r.Requests))
		}
		t.add(row...)
	}
	if err := t.write(w, s); err != nil {
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
	if idle > 0 {
		fmt.Fprintf(&text, "%s: nothing to do\n", Count(int64(idle), "clean customresourcedefinition", "clean customresourcedefinitions"))
	}
	_, err := io.WriteString(w, text.String())
	return err
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

func failed(n int64) cell {
	c := number(n)
	if n > 0 {
		c.tone = bad
	}
	return c
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
