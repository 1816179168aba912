package revisionreport

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/revision/decision"
)

var statusTable = render.Table[Plan]{
	{Name: "State", Cell: func(p Plan) render.Cell { return revisionStates[p.State] }},
	{Name: "Namespace", Cell: func(p Plan) render.Cell { return render.TextCell(p.Namespace) }},
	{Name: "Owner", Cell: func(p Plan) render.Cell { return ownerCell(p.Owner) }},
	{Name: "Until", Cell: func(p Plan) render.Cell { return untilCell(p.RetainedUntil) }},
	{Name: "Revision", Key: true, Cell: func(p Plan) render.Cell { return render.TextCell(p.Name) }},
	{Name: "New revision", Cell: func(p Plan) render.Cell { return render.TextCell(p.Replacement) }},
}

// WriteStatus writes the state of each upgrade, and what it waits for. The list has no other
// revisions.
func WriteStatus(w io.Writer, s render.Style, l PlanList) error {
	var text strings.Builder
	text.WriteString(statusTable.Text(s, l.Items))
	counts := map[State]int64{}
	for _, p := range l.Items {
		counts[p.State]++
	}
	for _, p := range l.Items {
		switch p.State {
		case StateInUse:
			fmt.Fprintf(&text, "\n%s/%s\n", p.Namespace, p.Name)
			for _, r := range p.References {
				fmt.Fprintf(&text, "  %s %s %s refers to it at %s%s\n", s.Paint(render.Attention, "! InUse:"), r.Kind, r.Name, r.Path, whyFixed(r.State))
			}
			if p.Message != "" {
				fmt.Fprintf(&text, "  %s %s\n", s.Paint(render.Attention, "! "+p.Reason+":"), p.Message)
			}
		case StateDeferred, StateBlocked:
			fmt.Fprintf(&text, "\n%s/%s\n  %s %s\n", p.Namespace, p.Name, s.Paint(render.Attention, "! "+p.Reason+":"), p.Message)
		}
	}
	if len(l.Items) == 0 {
		text.WriteString("no upgrade is in progress or pending\n")
	} else {
		fmt.Fprintf(&text, "\n%s: %d to upgrade, %d in use, %d retained, %d rolled back, %d deferred, %d blocked\n", render.Count(int64(len(l.Items)), "revision", "revisions"),
			counts[StateUpgrade]+counts[StateRelabel], counts[StateInUse], counts[StateRetained], counts[StateRolledBack], counts[StateDeferred], counts[StateBlocked])
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func whyFixed(state string) string {
	switch state {
	case decision.ReferenceFixed:
		return "; the reference ends when the virtual machine stops"
	case decision.ReferenceImplied:
		return "; the snapshot names a copy, and a restore reads this revision"
	}
	return ""
}

// untilCell has a time in the time zone of the user.
func untilCell(t *time.Time) render.Cell {
	if t == nil {
		return render.Cell{}
	}
	return render.TextCell(t.Local().Format("2006-01-02 15:04 MST"))
}
