package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/revision"
)

// WriteRevisionStatus writes how far each upgrade is, and what holds it. The list has
// nothing else.
func WriteRevisionStatus(w io.Writer, s Style, l RevisionPlanList) error {
	t := table{header: []string{"STATE", "NAMESPACE", "OWNER", "UNTIL", "REVISION", "TAKEN OVER BY"}}
	counts := map[RevisionState]int64{}
	for _, p := range l.Items {
		counts[p.State]++
		t.add(revisionStates[p.State], cell{text: p.Namespace}, cell{text: ownerText(p.Owner)}, cell{text: untilText(p.RetainedUntil)},
			cell{text: p.Name}, cell{text: orDash(p.Replacement)})
	}
	if err := t.write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	for _, p := range l.Items {
		switch p.State {
		case StateHeld:
			fmt.Fprintf(&text, "\n%s/%s\n", p.Namespace, p.Name)
			for _, r := range p.References {
				fmt.Fprintf(&text, "  %s %s %s refers to it at %s%s\n", s.paint(attention, "! held:"), r.Kind, r.Name, r.Path, whyFixed(r.State))
			}
			if p.Message != "" {
				fmt.Fprintf(&text, "  %s %s\n", s.paint(attention, "! "+p.Reason+":"), p.Message)
			}
		case StateDeferred, StateBlocked:
			fmt.Fprintf(&text, "\n%s/%s\n  %s %s\n", p.Namespace, p.Name, s.paint(attention, "! "+p.Reason+":"), p.Message)
		}
	}
	if len(l.Items) == 0 {
		text.WriteString("no upgrade is under way or to be begun\n")
	} else {
		fmt.Fprintf(&text, "\n%s: %d to upgrade, %d held, %d retained, %d rolled back, %d deferred, %d blocked\n", Count(int64(len(l.Items)), "revision", "revisions"),
			counts[StateUpgrade]+counts[StateRelabel], counts[StateHeld], counts[StateRetained], counts[StateRolledBack], counts[StateDeferred], counts[StateBlocked])
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
