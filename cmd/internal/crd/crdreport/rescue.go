package crdreport

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/rescue"
)

// Results of a rescue, beside those of a run.
const (
	// Rescued means that every object is readable and at the storage version, and that the CRD is restored.
	Rescued Result = "Rescued"
	// Healthy means that no version is missing, and that the API server lists the objects.
	Healthy Result = "Healthy"
	// Undone means that the CRD is as it was before its rescue.
	Undone Result = "Undone"
	// Ready means that a dry run found something to rescue.
	Ready Result = "Ready"
)

// Rescue says what a rescue did to one CRD.
type Rescue struct {
	Name           string `json:"name"`
	StorageVersion string `json:"storageVersion"`
	Result         Result `json:"result"`
	// AddedVersions are the versions that were missing.
	AddedVersions []string `json:"addedVersions"`
	// Objects is the tally of the last pass over them.
	Objects render.Objects `json:"objects"`
	// Changes are what a conversion without a webhook changes.
	Changes []rescue.Change `json:"changes"`
	// Verified means that the API server has listed every object without the added versions.
	Verified bool `json:"verified"`
	// Restored means that the spec of the CRD is what it was, and belongs to the same owners.
	Restored bool `json:"restored"`
	// ChangedBy are the owners of a spec that another client has changed meanwhile.
	ChangedBy []string         `json:"changedBy"`
	Failures  []godwit.Failure `json:"failures"`
}

// ResourceName implements [render.Item].
func (r Rescue) ResourceName() string { return resourceName(r.Name) }

// RescueList makes the list that `crd rescue` prints.
func RescueList(items []Rescue) render.List[Rescue] {
	for i := range items {
		r := &items[i]
		r.AddedVersions, r.Changes = render.Present(r.AddedVersions), render.Present(r.Changes)
		r.ChangedBy, r.Failures = render.Present(r.ChangedBy), render.Present(r.Failures)
	}
	return render.NewList("CRDRescueList", items)
}

var rescueResults = map[Result]render.Cell{
	Rescued: {Text: "✓ Rescued", Tone: render.Good}, Healthy: {Text: "✓ Healthy", Tone: render.Good},
	Undone: {Text: "✓ Undone", Tone: render.Good}, Ready: {Text: "● Ready", Tone: render.Attention},
}

var rescueTable = render.Table[Rescue]{
	{Name: "Name", Cell: func(r Rescue) render.Cell { return render.TextCell(r.Name) }},
	{Name: "Result", Cell: rescueResult},
	{Name: "Storage", Cell: func(r Rescue) render.Cell { return render.TextCell(r.StorageVersion) }},
	{Name: "Added", Cell: func(r Rescue) render.Cell { return render.WordsCell(r.AddedVersions) }},
	{Name: "Objects", Cell: func(r Rescue) render.Cell { return render.NumberCell(r.Objects.Total) }},
	{Name: "Migrated", Cell: func(r Rescue) render.Cell { return render.NumberCell(r.Objects.Migrated) }},
	{Name: "Verified", Cell: func(r Rescue) render.Cell { return render.YesNoCell(r.Verified) }},
	{Name: "Restored", Cell: func(r Rescue) render.Cell { return render.YesNoCell(r.Restored) }},
}

func rescueResult(r Rescue) render.Cell {
	if c, ok := rescueResults[r.Result]; ok {
		return c
	}
	return results[r.Result]
}

// WriteRescue writes a table with the result, and below it what a conversion changes and what failed.
func WriteRescue(w io.Writer, s render.Style, r Rescue) error {
	var text strings.Builder
	text.WriteString(rescueTable.Text(s, []Rescue{r}))
	if len(r.Changes)+len(r.Failures)+len(r.ChangedBy) > 0 {
		fmt.Fprintf(&text, "\n%s\n", r.Name)
	}
	for _, c := range r.Changes {
		tone, sign := render.Attention, "+ %s gets a value"
		if c.Lost {
			tone, sign = render.Bad, "- %s would lose its value"
		}
		fmt.Fprintf(&text, "  %s in %s, such as %s\n", s.Paint(tone, fmt.Sprintf(sign, c.Path)), render.Count(c.Objects, "object", "objects"), c.Example)
	}
	if len(r.ChangedBy) > 0 {
		fmt.Fprintf(&text, "  %s\n", s.Paint(render.Attention, "! another client changed the spec meanwhile; it belongs to "+strings.Join(r.ChangedBy, ", ")))
	}
	for _, f := range r.Failures {
		text.WriteString(render.FailureLine(s, r.Name, f))
	}
	_, err := io.WriteString(w, text.String())
	return err
}
