package revisionreport

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

var runTable = render.Table[Run]{
	{Name: "Result", Cell: func(r Run) render.Cell { return revisionStates[r.Phase] }},
	{Name: "Namespace", Cell: func(r Run) render.Cell { return render.TextCell(r.Namespace) }},
	{Name: "Owner", Cell: func(r Run) render.Cell { return ownerCell(r.Owner) }},
	{Name: "Reason", Cell: func(r Run) render.Cell { return render.TextCell(r.Reason) }},
	{Name: "Revision", Key: true, Cell: func(r Run) render.Cell { return render.TextCell(r.Name) }},
	{Name: "New revision", Cell: func(r Run) render.Cell { return render.TextCell(r.Replacement) }},
	{Name: "Until", Wide: true, Cell: func(r Run) render.Cell { return untilCell(r.RetainedUntil) }},
}

// WriteRun writes the revisions that were not upgraded and why, and a sum of all. A wide
// table has a row for each revision that was not at the target version.
func WriteRun(w io.Writer, s render.Style, r RunReport) error {
	var shown []Run
	for one := range r.Items.All() {
		if one.Phase.problem() || one.overdue() || one.Phase == StateUnreferenced || s.Wide {
			shown = append(shown, one)
		}
	}
	var text strings.Builder
	text.WriteString(runTable.Text(s, shown))
	for _, one := range shown {
		if !one.remedied() {
			continue
		}
		mark := render.MarkAttention
		if one.Phase == StateFailed || one.Phase == StateBlocked {
			mark = render.MarkBad
		}
		text.WriteString(render.Below(render.ObjectName(one.Namespace, one.Name), one.Lines(s, mark)))
	}
	if len(shown) > 0 {
		text.WriteString("\n")
	}
	for _, v := range r.DroppableVersions {
		fmt.Fprintf(&text, "%s no revision is stored at it; you can drop it\n", s.Paint(render.Good, "✓ "+v+":"))
	}
	fmt.Fprintf(&text, "%s\n", runSum(r))
	_, err := io.WriteString(w, text.String())
	return err
}

func runSum(r RunReport) string {
	c := r.Counts
	parts := render.Parts([]render.Part{
		{N: c.UpToDate, What: "up to date"}, {N: c.Succeeded, What: "finished"}, {N: c.Relabelled, What: "relabelled"}, {N: c.RolledBack, What: "rolled back"},
		{N: c.Retained, What: "upgraded, the old one retained"}, {N: c.InUse, What: "in use"}, {N: c.Pending, What: "to upgrade"}, {N: c.Deferred, What: "deferred"},
		{N: c.Blocked, What: "blocked"}, {N: c.Failed, What: "failed"}, {N: c.Unreferenced, What: "unreferenced"},
	})
	parts = append(parts, "in "+render.Duration(r.DurationSeconds))
	return render.Count(c.Discovered, "revision", "revisions") + ": " + strings.Join(parts, ", ")
}
