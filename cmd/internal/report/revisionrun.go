package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteRevisionRun writes which revisions were not upgraded and why, and counts of all. With
// everything asked for, it has a row for each revision that was not at the target.
func WriteRevisionRun(w io.Writer, s Style, r RevisionRunReport) error {
	t := table{header: []string{"RESULT", "NAMESPACE", "OWNER", "REASON", "REVISION", "NEW REVISION"}}
	if s.Wide {
		t.header = append(t.header, "UNTIL")
	}
	shown := slices.DeleteFunc(slices.Clone(r.Items), func(one *RevisionRun) bool { return !one.Phase.problem() && !s.Wide })
	for _, one := range shown {
		row := []cell{
			revisionStates[one.Phase], {text: one.Namespace}, {text: ownerText(one.Owner)}, {text: orDash(one.Reason)},
			{text: one.Name}, {text: orDash(one.Replacement)},
		}
		if s.Wide {
			row = append(row, cell{text: untilText(one.RetainedUntil)})
		}
		t.add(row...)
	}
	if err := t.write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	for _, one := range shown {
		if !one.remedied() {
			continue
		}
		mark, tone := "!", attention
		if one.Phase == StateFailed || one.Phase == StateBlocked {
			mark, tone = "✗", bad
		}
		fmt.Fprintf(&text, "\n%s/%s\n  %s %s\n", one.Namespace, one.Name, s.paint(tone, mark+" "+orDash(one.Reason)+":"), one.Message)
		if what := one.Remedy; what != "" {
			fmt.Fprintf(&text, "    → %s\n", what)
		}
	}
	if len(shown) > 0 {
		text.WriteString("\n")
	}
	for _, v := range r.DroppableVersions {
		fmt.Fprintf(&text, "%s nothing is left at it, it can be dropped\n", s.paint(good, "✓ "+v+":"))
	}
	fmt.Fprintf(&text, "%s\n", runSum(r))
	_, err := io.WriteString(w, text.String())
	return err
}

func runSum(r RevisionRunReport) string {
	c := r.Counts
	var parts []string
	for _, part := range []struct {
		n    int64
		what string
	}{
		{c.UpToDate, "up to date"}, {c.Succeeded, "finished"}, {c.Relabelled, "relabelled"}, {c.RolledBack, "rolled back"},
		{c.Retained, "upgraded, the old one retained"}, {c.Held, "held"}, {c.Pending, "to upgrade"}, {c.Deferred, "deferred"},
		{c.Blocked, "blocked"}, {c.Failed, "failed"}, {c.Unreferenced, "unreferenced"},
	} {
		if part.n > 0 {
			parts = append(parts, Number(part.n)+" "+part.what)
		}
	}
	parts = append(parts, "in "+Duration(r.DurationSeconds))
	return Count(c.Discovered, "revision", "revisions") + ": " + strings.Join(parts, ", ")
}
