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
}

// phaseOrder is the order of the table and of the sum: problems come first.
var phaseOrder = []fleet.Phase{
	fleet.PhaseFailed, fleet.PhaseUndone, fleet.PhaseDeferred, fleet.PhaseInterrupted, fleet.PhaseSkipped,
	fleet.PhaseRenamed, fleet.PhaseRolledBack, fleet.PhaseRestored, fleet.PhaseUnchanged, fleet.PhaseGone,
}

// maxStopped bounds the rows of managed resources that a stopped run did not begin.
const maxStopped = 3

// WriteRun writes the managed resources that are not as they were to be and why, and a sum of all. A wide
// table has a row for each.
func WriteRun(w io.Writer, s render.Style, items []Run) error {
	stopped := 0
	shown := slices.DeleteFunc(slices.Clone(items), func(r Run) bool {
		if r.Reason == fleet.ReasonStopped && r.Phase == fleet.PhaseSkipped {
			stopped++
			return stopped > maxStopped && !s.Wide
		}
		return r.Reason == "" && !s.Wide
	})
	slices.SortStableFunc(shown, func(a, b Run) int { return slices.Index(phaseOrder, a.Phase) - slices.Index(phaseOrder, b.Phase) })
	t := render.Table{Header: []string{"RESULT", "NAMESPACE", "NAME", "BEFORE", "AFTER", "REASON"}}
	for _, r := range shown {
		t.Add(phases[r.Phase], render.Cell{Text: render.OrDash(r.Namespace)}, render.Cell{Text: r.Name},
			render.Cell{Text: nameText(r.Before)}, render.Cell{Text: nameText(r.After)}, render.Cell{Text: render.OrDash(r.Reason)})
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	for _, r := range shown {
		if r.Reason == "" || r.Reason == fleet.ReasonStopped {
			continue
		}
		writeReason(&text, s, key(r.Namespace, r.Name), finding{r.Reason, r.Message, r.Remedy, phases[r.Phase].Tone})
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
	var parts []string
	for _, p := range slices.Backward(phaseOrder) {
		if n := counts[p]; n > 0 {
			parts = append(parts, render.Number(n)+" "+words[p])
		}
	}
	if len(parts) == 0 {
		return "0 managed resources: nothing to do"
	}
	return render.Count(int64(len(items)), "managed resource", "managed resources") + ": " + strings.Join(parts, ", ")
}

var words = map[fleet.Phase]string{
	fleet.PhaseFailed: "failed", fleet.PhaseUndone: "undone", fleet.PhaseDeferred: "deferred", fleet.PhaseInterrupted: "interrupted",
	fleet.PhaseSkipped: "skipped", fleet.PhaseGone: "gone", fleet.PhaseUnchanged: "unchanged", fleet.PhaseRenamed: "renamed",
	fleet.PhaseRolledBack: "rolled back", fleet.PhaseRestored: "restored",
}
