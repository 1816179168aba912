package crdreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

var results = map[Result]render.Cell{
	Succeeded: {Text: "✓ Succeeded", Tone: render.Good},
	Accepted:  {Text: "● Accepted", Tone: render.Attention},
	Planned:   {Text: "● Planned", Tone: render.Attention},
	NoChange:  {Text: "✓ NoChange", Tone: render.Faint},
	Partial:   {Text: "◐ Partial", Tone: render.Attention},
	Failed:    {Text: "✗ Failed", Tone: render.Bad},
	Blocked:   {Text: "✗ Blocked", Tone: render.Bad},
	Unknown:   {Text: "? Unknown", Tone: render.Unsure},

	Terminating: {Text: "- Terminating", Tone: render.Faint},
}

// runTable has the columns of runs. In each row, the outcomes add up to the objects.
var runTable = render.Table[Run]{
	{Name: "Name", Cell: func(r Run) render.Cell { return render.TextCell(r.Name) }},
	{Name: "Result", Cell: func(r Run) render.Cell { return results[r.Result] }},
	{Name: "Storage", Cell: func(r Run) render.Cell { return render.TextCell(r.StorageVersion) }},
	{Name: "Objects", Cell: func(r Run) render.Cell { return r.count(r.Objects.Total) }},
	{Name: "Migrated", Cell: func(r Run) render.Cell { return r.count(r.Objects.Migrated) }},
	{Name: "Unchanged", Cell: func(r Run) render.Cell { return r.count(r.Objects.Unchanged) }},
	{Name: "Skipped", Cell: func(r Run) render.Cell { return r.count(r.Objects.Skipped) }},
	{Name: "Gone", IfAny: true, Cell: func(r Run) render.Cell { return r.count(r.Objects.Gone) }},
	{Name: "Deferred", IfAny: true, Cell: func(r Run) render.Cell { return r.count(r.Objects.Deferred) }},
	{Name: "Failed", Cell: failedCell},
	{Name: "Trimmed", Cell: func(r Run) render.Cell { return render.YesNoCell(r.Trimmed) }},
	{Name: "Time", Cell: func(r Run) render.Cell { return render.DurationCell(r.DurationSeconds) }},
	{Name: "Requests", Wide: true, Cell: func(r Run) render.Cell { return render.NumberCell(r.Requests) }},
}

// dryRunTable has the columns of dry runs.
var dryRunTable = render.Table[Run]{
	{Name: "Name", Cell: func(r Run) render.Cell { return render.TextCell(r.Name) }},
	{Name: "Result", Cell: func(r Run) render.Cell { return results[r.Result] }},
	{Name: "Storage", Cell: func(r Run) render.Cell { return render.TextCell(r.StorageVersion) }},
	{Name: "Objects", Cell: func(r Run) render.Cell { return r.count(r.Objects.Total) }},
	{Name: "Accepted", Cell: func(r Run) render.Cell { return r.count(r.Objects.Skipped) }},
	{Name: "Refused", Cell: func(r Run) render.Cell { return r.count(r.Objects.Failed + r.Objects.Deferred) }},
	{Name: "Time", Cell: func(r Run) render.Cell { return render.DurationCell(r.DurationSeconds) }},
}

// count returns a number of objects, or empty if the run did not look at them.
func (r Run) count(n int64) render.Cell {
	if r.Objects.Total == 0 && slices.Contains([]Result{Blocked, Unknown, Planned}, r.Result) {
		return render.Cell{}
	}
	return render.NumberCell(n)
}

func failedCell(r Run) render.Cell {
	c := r.count(r.Objects.Failed)
	if r.Objects.Failed > 0 {
		c.Tone = render.Bad
	}
	return c
}

// WriteRuns writes a table with the result of each CRD, and the failures below it.
func WriteRuns(w io.Writer, s render.Style, runs []Run, folded Folded) error {
	var text strings.Builder
	table := runTable
	if slices.ContainsFunc(runs, func(r Run) bool { return r.DryRun }) {
		table = dryRunTable
	}
	text.WriteString(table.Text(s, runs))
	for _, r := range runs {
		text.WriteString(render.FailureLines(s, r.Name, r.Failures, r.Objects.Counts))
	}
	for _, r := range runs {
		if r.Values != nil && r.Values.ProvenBy != evidence.BySchemas {
			fmt.Fprintf(&text, "\n%s: %s\n", r.Name, r.Values)
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

// String says how it was proven that each value survives.
func (v *Values) String() string {
	if v.ProvenBy == evidence.BySchemas {
		return "each value is kept, as the schemas show"
	}
	var parts []string
	if v.ProvenBy == evidence.ByRoundTrips {
		parts = append(parts, render.Count(v.Objects, "object", "objects")+" tried through their old versions before the first write")
	}
	switch {
	case len(v.Accepted) > 0:
		parts = append(parts, "values dropped, as --accept-loss allows: "+values.Describe(v.Accepted, false))
	case v.ProvenBy == evidence.ByRoundTrips:
		parts = append(parts, "each value is kept")
	}
	if len(v.Unproven) > 0 {
		parts = append(parts, "not known what objects had only at "+strings.Join(v.Unproven, ", ")+", as --accept-loss allows")
	}
	return strings.Join(parts, "; ")
}

// WriteOwnerReferences writes a line for each CRD with ownerReferences that the run repaired, or would repair, or left.
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

// Summary returns the result of one CRD in one line.
func Summary(r Run) string {
	parts := append([]string{string(r.Result)}, render.Outcomes(r.Objects.Counts)...)
	parts = append(parts, render.Parts([]render.Part{
		{N: r.ManagedFields.Cleaned, What: "managedFields cleaned"}, {N: r.ManagedFields.Deferred, What: "managedFields deferred"},
		{N: r.ManagedFields.Failed, What: "managedFields failed"},
	})...)
	if r.Trimmed {
		parts = append(parts, "storedVersions trimmed to "+r.StorageVersion)
	}
	return strings.Join(append(parts, render.Duration(r.DurationSeconds)), ", ")
}
