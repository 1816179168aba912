package crdreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/report"
)

var results = map[Result]report.Cell{
	Succeeded: {Text: "✓ Succeeded", Tone: report.Good},
	NoChange:  {Text: "✓ NoChange", Tone: report.Faint},
	Partial:   {Text: "◐ Partial", Tone: report.Attention},
	Failed:    {Text: "✗ Failed", Tone: report.Bad},
	Blocked:   {Text: "✗ Blocked", Tone: report.Bad},
	Unknown:   {Text: "? Unknown", Tone: report.Bad},

	Terminating: {Text: "- Terminating", Tone: report.Faint},
}

// WriteRuns writes a table with the result of each CRD, and the failures below it.
func WriteRuns(w io.Writer, s report.Style, runs []Run, folded Folded) error {
	if err := runTable(s, runs).Write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	for _, r := range runs {
		named := int64(0) // objects, without the CRD
		for i, f := range r.Failures {
			if f.Name != r.Name {
				named++
			}
			if i == 0 {
				fmt.Fprintf(&text, "\n%s\n", r.Name)
			}
			fmt.Fprintf(&text, "  %s %s\n", s.Paint(report.Bad, "✗ "+failedName(f.Namespace, f.Name)+":"), f)
		}
		if more := r.Objects.Failed + r.Objects.Deferred - named; named > 0 && more > 0 {
			fmt.Fprintf(&text, "  … and %s\n", report.Count(more, "more object", "more objects"))
		}
	}
	if err := WriteOwnerReferences(&text, runs); err != nil {
		return err
	}
	if folded.Clean > 0 {
		fmt.Fprintf(&text, "%s: nothing to do\n", report.Count(folded.Clean, "clean customresourcedefinition", "clean customresourcedefinitions"))
	}
	if folded.Lacking > 0 {
		fmt.Fprintf(&text, "%s: not begun, because permissions are missing\n", report.CRDs(folded.Lacking))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// WriteOwnerReferences writes a line for each CRD to whose objects such references were found.
func WriteOwnerReferences(w io.Writer, runs []Run) error {
	for _, r := range runs {
		var parts []string
		for _, c := range []struct {
			n    int64
			what string
		}{
			{r.OwnerReferences.Repaired, "repaired"}, {r.OwnerReferences.Found, "to repair"},
			{r.OwnerReferences.Left, "left, because the owner does not exist or its storage version is not served"}, {r.OwnerReferences.Failed, "failed"},
		} {
			if c.n > 0 {
				parts = append(parts, report.Count(c.n, "object", "objects")+" "+c.what)
			}
		}
		if len(parts) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s: ownerReferences of %s\n", r.Name, strings.Join(parts, ", ")); err != nil {
			return err
		}
	}
	return nil
}

// outcome is a column of the table of runs.
type outcome struct {
	name string
	// optional means that the column is only shown if a row has a number above zero, or if
	// the table is wide.
	optional bool
	of       func(report.Objects) int64
}

// outcomes are all outcomes. In each row they add up to the objects.
var outcomes = []outcome{
	{"MIGRATED", false, func(o report.Objects) int64 { return o.Migrated }},
	{"UNCHANGED", false, func(o report.Objects) int64 { return o.Unchanged }},
	{"SKIPPED", false, func(o report.Objects) int64 { return o.Skipped }},
	{"GONE", true, func(o report.Objects) int64 { return o.Gone }},
	{"DEFERRED", true, func(o report.Objects) int64 { return o.Deferred }},
	{"FAILED", false, func(o report.Objects) int64 { return o.Failed }},
}

func (o outcome) shown(s report.Style, runs []Run) bool {
	return !o.optional || s.Wide || slices.ContainsFunc(runs, func(r Run) bool { return o.of(r.Objects) > 0 })
}

func runTable(s report.Style, runs []Run) *report.Table {
	shown := slices.DeleteFunc(slices.Clone(outcomes), func(o outcome) bool { return !o.shown(s, runs) })
	t := &report.Table{Header: []string{"NAME", "RESULT", "STORAGE", "OBJECTS"}}
	for _, o := range shown {
		t.Header = append(t.Header, o.name)
	}
	t.Header = append(t.Header, "TRIMMED", "TIME")
	if s.Wide {
		t.Header = append(t.Header, "REQUESTS")
	}
	for _, r := range runs {
		row := []report.Cell{{Text: r.Name}, results[r.Result], {Text: report.OrDash(r.StorageVersion)}, report.NumberCell(r.Objects.Total)}
		for _, o := range shown {
			c := report.NumberCell(o.of(r.Objects))
			if o.name == "FAILED" && o.of(r.Objects) > 0 {
				c.Tone = report.Bad
			}
			row = append(row, c)
		}
		row = append(row, report.Cell{Text: report.YesNo(r.Trimmed)}, report.Cell{Text: report.Duration(r.DurationSeconds)})
		if s.Wide {
			row = append(row, report.NumberCell(r.Requests))
		}
		t.Add(row...)
	}
	return t
}

// Summary returns the result of one CRD in one line.
func Summary(r Run) string {
	parts := append([]string{string(r.Result)}, report.Outcomes(r.Objects.Counts)...)
	for _, c := range []struct {
		n    int64
		what string
	}{
		{r.ManagedFields.Cleaned, "managedFields cleaned"}, {r.ManagedFields.Deferred, "managedFields deferred"},
		{r.ManagedFields.Failed, "managedFields failed"},
	} {
		if c.n > 0 {
			parts = append(parts, report.Number(c.n)+" "+c.what)
		}
	}
	if r.Trimmed {
		parts = append(parts, "storedVersions trimmed to "+r.StorageVersion)
	}
	return strings.Join(append(parts, report.Duration(r.DurationSeconds)), ", ")
}

func failedName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
