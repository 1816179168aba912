package revisionreport

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// WriteRun writes the revisions that were not upgraded and why, and a sum of all. A wide
// table has a row for each revision that was not at the target version.
func WriteRun(w io.Writer, s render.Style, r RunReport) error {
	t := render.Table{Header: []string{"RESULT", "NAMESPACE", "OWNER", "REASON", "REVISION", "NEW REVISION"}}
	if s.Wide {
		t.Header = append(t.Header, "UNTIL")
	}
	var shown []Run
	for one := range r.Items.All() {
		if one.Phase.problem() || one.overdue() || s.Wide {
			shown = append(shown, one)
		}
	}
	for _, one := range shown {
		row := []render.Cell{
			revisionStates[one.Phase], {Text: one.Namespace}, {Text: ownerText(one.Owner)}, {Text: render.OrDash(one.Reason)},
			{Text: one.Name}, {Text: render.OrDash(one.Replacement)},
		}
		if s.Wide {
			row = append(row, render.Cell{Text: untilText(one.RetainedUntil)})
		}
		t.Add(row...)
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	for _, one := range shown {
		if !one.remedied() {
			continue
		}
		mark, tone := "!", render.Attention
		if one.Phase == StateFailed || one.Phase == StateBlocked {
			mark, tone = "✗", render.Bad
		}
		fmt.Fprintf(&text, "\n%s/%s\n  %s %s\n", one.Namespace, one.Name, s.Paint(tone, mark+" "+render.OrDash(one.Reason)+":"), one.Message)
		if what := one.Remedy; what != "" {
			fmt.Fprintf(&text, "    → %s\n", what)
		}
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
	var parts []string
	for _, part := range []struct {
		n    int64
		what string
	}{
		{c.UpToDate, "up to date"}, {c.Succeeded, "finished"}, {c.Relabelled, "relabelled"}, {c.RolledBack, "rolled back"},
		{c.Retained, "upgraded, the old one retained"}, {c.InUse, "in use"}, {c.Pending, "to upgrade"}, {c.Deferred, "deferred"},
		{c.Blocked, "blocked"}, {c.Failed, "failed"}, {c.Unreferenced, "unreferenced"},
	} {
		if part.n > 0 {
			parts = append(parts, render.Number(part.n)+" "+part.what)
		}
	}
	parts = append(parts, "in "+render.Duration(r.DurationSeconds))
	return render.Count(c.Discovered, "revision", "revisions") + ": " + strings.Join(parts, ", ")
}
