package revisionreport

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/revision"
)

// WriteStatus writes the state of each upgrade, and what it waits for. The list has no other
// revisions.
func WriteStatus(w io.Writer, s render.Style, l PlanList) error {
	t := render.Table{Header: []string{"STATE", "NAMESPACE", "OWNER", "UNTIL", "REVISION", "NEW REVISION"}}
	counts := map[State]int64{}
	for _, p := range l.Items {
		counts[p.State]++
		t.Add(revisionStates[p.State], render.Cell{Text: p.Namespace}, render.Cell{Text: ownerText(p.Owner)}, render.Cell{Text: untilText(p.RetainedUntil)},
			render.Cell{Text: p.Name}, render.Cell{Text: render.OrDash(p.Replacement)})
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	var text strings.Builder
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
	case revision.ReferenceFixed:
		return "; the reference ends when the virtual machine stops"
	case revision.ReferenceImplied:
		return "; the snapshot names a copy, and a restore reads this revision"
	}
	return ""
}

// untilText returns a time in the time zone of the user.
func untilText(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04 MST")
}
