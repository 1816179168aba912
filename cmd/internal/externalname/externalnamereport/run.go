package externalnamereport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fleet"
)

var phases = map[fleet.Phase]render.Cell{
	fleet.PhaseFailed:      {Text: "✗ Failed", Tone: render.Bad},
	fleet.PhaseUndone:      {Text: "✗ Undone", Tone: render.Bad},
	fleet.PhaseDeferred:    {Text: "! Deferred", Tone: render.Attention},
	fleet.PhaseInterrupted: {Text: "! Interrupted", Tone: render.Attention},
	fleet.PhaseSkipped:     {Text: "! Skipped", Tone: render.Attention},
	fleet.PhaseGone:        {Text: "· Gone", Tone: render.Faint},
	fleet.PhaseUnchanged:   {Text: "✓ Unchanged", Tone: render.Good},
	fleet.PhaseRenamed:     {Text: "✓ Renamed", Tone: render.Good},
	fleet.PhaseRolledBack:  {Text: "✓ RolledBack", Tone: render.Good},
	fleet.PhaseRestored:    {Text: "✓ Restored", Tone: render.Good},
	fleet.PhaseHandedOver:  {Text: "✓ HandedOver", Tone: render.Good},
}

// phaseOrder is the order of the table and of the sum: problems come first.
var phaseOrder = []fleet.Phase{
	fleet.PhaseFailed, fleet.PhaseUndone, fleet.PhaseDeferred, fleet.PhaseInterrupted, fleet.PhaseSkipped,
	fleet.PhaseRenamed, fleet.PhaseRolledBack, fleet.PhaseRestored, fleet.PhaseHandedOver, fleet.PhaseUnchanged, fleet.PhaseGone,
}

// maxStopped bounds the rows of managed resources that a stopped run did not begin.
const maxStopped = 3

var runTable = render.Table[Run]{
	{Name: "Result", Cell: func(r Run) render.Cell { return phases[r.Phase] }},
	{Name: "Namespace", Cell: func(r Run) render.Cell { return render.TextCell(r.Namespace) }},
	{Name: "Name", Key: true, Cell: func(r Run) render.Cell { return render.TextCell(r.Name) }},
	{Name: "Before", Cell: func(r Run) render.Cell { return nameCell(r.Before) }},
	{Name: "After", Cell: func(r Run) render.Cell { return nameCell(r.After) }},
	{Name: "Reason", Cell: func(r Run) render.Cell { return render.TextCell(r.Reason) }},
}

// WriteRun writes the managed resources without their intended name and the reasons, and a sum of all. A wide table has
// a row for each.
func WriteRun(w io.Writer, s render.Style, items []Run) error {
	stopped := 0
	shown := slices.DeleteFunc(slices.Clone(items), func(r Run) bool {
		if r.Reason == fleet.ReasonStopped.Name && r.Phase == fleet.PhaseSkipped {
			stopped++
			return stopped > maxStopped && !s.Wide
		}
		return r.Reason == "" && !s.Wide
	})
	slices.SortStableFunc(shown, func(a, b Run) int { return slices.Index(phaseOrder, a.Phase) - slices.Index(phaseOrder, b.Phase) })
	var text strings.Builder
	text.WriteString(runTable.Text(s, shown))
	for _, r := range shown {
		if r.Reason == "" || r.Reason == fleet.ReasonStopped.Name && r.Phase == fleet.PhaseSkipped {
			continue
		}
		mark := render.Cell{Text: render.MarkBad.Text, Tone: phases[r.Phase].Tone}
		if mark.Tone == render.Attention {
			mark = render.MarkAttention
		}
		text.WriteString(render.Below(render.ObjectName(r.Namespace, r.Name), r.Lines(s, mark)))
	}
	if len(shown) > 0 {
		text.WriteString("\n")
	}
	fmt.Fprintf(&text, "%s\n", runSum(items))
	_, err := io.WriteString(w, text.String())
	return err
}

func runSum(items []Run) string {
	counts := map[fleet.Phase]int64{}
	for _, r := range items {
		counts[r.Phase]++
	}
	var sum []render.Part
	for _, p := range slices.Backward(phaseOrder) {
		sum = append(sum, render.Part{N: counts[p], What: words[p]})
	}
	parts := render.Parts(sum)
	if len(parts) == 0 {
		return "0 managed resources: nothing to do"
	}
	return render.Count(int64(len(items)), "managed resource", "managed resources") + ": " + strings.Join(parts, ", ")
}

var words = map[fleet.Phase]string{
	fleet.PhaseFailed: "failed", fleet.PhaseUndone: "undone", fleet.PhaseDeferred: "deferred", fleet.PhaseInterrupted: "interrupted",
	fleet.PhaseSkipped: "skipped", fleet.PhaseGone: "gone", fleet.PhaseUnchanged: "unchanged", fleet.PhaseRenamed: "renamed",
	fleet.PhaseRolledBack: "rolled back", fleet.PhaseRestored: "restored", fleet.PhaseHandedOver: "handed over",
}
