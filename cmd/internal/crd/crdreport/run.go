package crdreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

var results = map[Result]render.Cell{
	Succeeded: {Text: "✓ Succeeded", Tone: render.Good},
	NoChange:  {Text: "✓ NoChange", Tone: render.Faint},
	Partial:   {Text: "◐ Partial", Tone: render.Attention},
	Failed:    {Text: "✗ Failed", Tone: render.Bad},
	Blocked:   {Text: "✗ Blocked", Tone: render.Bad},
	Unknown:   {Text: "? Unknown", Tone: render.Bad},

	Terminating: {Text: "- Terminating", Tone: render.Faint},
}

// WriteRuns writes a table with the result of each CRD, and the failures below it.
func WriteRuns(w io.Writer, s render.Style, runs []Run, folded Folded) error {
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
			fmt.Fprintf(&text, "  %s %s\n", s.Paint(render.Bad, "✗ "+failedName(f.Namespace, f.Name)+":"), f)
		}
		if more := r.Objects.Failed + r.Objects.Deferred - named; named > 0 && more > 0 {
			fmt.Fprintf(&text, "  … and %s\n", render.Count(more, "more object", "more objects"))
		}
	}
	if err := WriteOwnerReferences(&text, runs); err != nil {
		return err
	}
	if folded.Clean > 0 {
		fmt.Fprintf(&text, "%s: nothing to do\n", render.Count(folded.Clean, "clean customresourcedefinition", "clean customresourcedefinitions"))
	}
	if folded.Lacking > 0 {
		fmt.Fprintf(&text, "%s: not begun, because permissions are missing\n", render.CRDs(folded.Lacking))
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
				parts = append(parts, render.Count(c.n, "object", "objects")+" "+c.what)
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
	of       func(render.Objects) int64
}

// outcomes are all outcomes. In each row they add up to the objects.
var outcomes = []outcome{
	{"MIGRATED", false, func(o render.Objects) int64 { return o.Migrated }},
	{"UNCHANGED", false, func(o render.Objects) int64 { return o.Unchanged }},
	{"SKIPPED", false, func(o render.Objects) int64 { return o.Skipped }},
	{"GONE", true, func(o render.Objects) int64 { return o.Gone }},
	{"DEFERRED", true, func(o render.Objects) int64 { return o.Deferred }},
	{"FAILED", false, func(o render.Objects) int64 { return o.Failed }},
}

func (o outcome) shown(s render.Style, runs []Run) bool {
	return !o.optional || s.Wide || slices.ContainsFunc(runs, func(r Run) bool { return o.of(r.Objects) > 0 })
}

func runTable(s render.Style, runs []Run) *render.Table {
	shown := slices.DeleteFunc(slices.Clone(outcomes), func(o outcome) bool { return !o.shown(s, runs) })
	t := &render.Table{Header: []string{"NAME", "RESULT", "STORAGE", "OBJECTS"}}
	for _, o := range shown {
		t.Header = append(t.Header, o.name)
	}
	t.Header = append(t.Header, "TRIMMED", "TIME")
	if s.Wide {
		t.Header = append(t.Header, "REQUESTS")
	}
	for _, r := range runs {
		row := []render.Cell{{Text: r.Name}, results[r.Result], {Text: render.OrDash(r.StorageVersion)}, render.NumberCell(r.Objects.Total)}
		for _, o := range shown {
			c := render.NumberCell(o.of(r.Objects))
			if o.name == "FAILED" && o.of(r.Objects) > 0 {
				c.Tone = render.Bad
			}
			row = append(row, c)
		}
		row = append(row, render.Cell{Text: render.YesNo(r.Trimmed)}, render.Cell{Text: render.Duration(r.DurationSeconds)})
		if s.Wide {
			row = append(row, render.NumberCell(r.Requests))
		}
		t.Add(row...)
	}
	return t
}

// Summary returns the result of one CRD in one line.
func Summary(r Run) string {
	parts := append([]string{string(r.Result)}, render.Outcomes(r.Objects.Counts)...)
	for _, c := range []struct {
		n    int64
		what string
	}{
		{r.ManagedFields.Cleaned, "managedFields cleaned"}, {r.ManagedFields.Deferred, "managedFields deferred"},
		{r.ManagedFields.Failed, "managedFields failed"},
	} {
		if c.n > 0 {
			parts = append(parts, render.Number(c.n)+" "+c.what)
		}
	}
	if r.Trimmed {
		parts = append(parts, "storedVersions trimmed to "+r.StorageVersion)
	}
	return strings.Join(append(parts, render.Duration(r.DurationSeconds)), ", ")
}

func failedName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
