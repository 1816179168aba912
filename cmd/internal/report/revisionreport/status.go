package revisionreport

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/revision"
)

// WriteStatus writes how far each upgrade is, and what holds it. The list has
// nothing else.
func WriteStatus(w io.Writer, s report.Style, l PlanList) error {
	t := report.Table{Header: []string{"STATE", "NAMESPACE", "OWNER", "UNTIL", "REVISION", "TAKEN OVER BY"}}
	counts := map[State]int64{}
	for _, p := range l.Items {
		counts[p.State]++
		t.Add(revisionStates[p.State], report.Cell{Text: p.Namespace}, report.Cell{Text: ownerText(p.Owner)}, report.Cell{Text: untilText(p.RetainedUntil)},
			report.Cell{Text: p.Name}, report.Cell{Text: report.OrDash(p.Replacement)})
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
				fmt.Fprintf(&text, "  %s %s %s refers to it at %s%s\n", s.Paint(report.Attention, "! in use:"), r.Kind, r.Name, r.Path, whyFixed(r.State))
			}
			if p.Message != "" {
				fmt.Fprintf(&text, "  %s %s\n", s.Paint(report.Attention, "! "+p.Reason+":"), p.Message)
			}
		case StateDeferred, StateBlocked:
			fmt.Fprintf(&text, "\n%s/%s\n  %s %s\n", p.Namespace, p.Name, s.Paint(report.Attention, "! "+p.Reason+":"), p.Message)
		}
	}
	if len(l.Items) == 0 {
		text.WriteString("no upgrade is under way or to be begun\n")
	} else {
		fmt.Fprintf(&text, "\n%s: %d to upgrade, %d in use, %d retained, %d rolled back, %d deferred, %d blocked\n", report.Count(int64(len(l.Items)), "revision", "revisions"),
			counts[StateUpgrade]+counts[StateRelabel], counts[StateInUse], counts[StateRetained], counts[StateRolledBack], counts[StateDeferred], counts[StateBlocked])
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func whyFixed(state string) string {
	switch state {
	case revision.ReferenceFixed:
		return ", which goes when what runs by it ends"
	case revision.ReferenceImplied:
		return ", where it names its copy: a restore looks this one up"
	}
	return ""
}

// untilText is for people, in the time zone they have.
func untilText(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04 MST")
}
