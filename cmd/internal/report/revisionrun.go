package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/revision"
)

var revisionPhases = map[revision.Phase]cell{
	revision.Pending:    {"◐ Pending", attention},
	revision.Analyzing:  {"◐ Analyzing", attention},
	revision.Converted:  {"◐ Converted", attention},
	revision.Created:    {"◐ Created", attention},
	revision.Repointed:  {"◐ Repointed", attention},
	revision.Held:       {"◐ Held", attention},
	revision.Retained:   {"✓ Retained", good},
	revision.Succeeded:  {"✓ Succeeded", good},
	revision.Skipped:    {"· Skipped", faint},
	revision.Failed:     {"✗ Failed", bad},
	revision.RolledBack: {"✓ RolledBack", good},
}

// WriteRevisionRun writes what became of each revision that was not at the target,
// why some are not further, and a sum.
func WriteRevisionRun(w io.Writer, s Style, r RevisionRunReport) error {
	t := table{header: []string{"RESULT", "NAMESPACE", "OWNER", "REASON", "REVISION", "NEW REVISION"}}
	if s.Wide {
		t.header = append(t.header, "UNTIL")
	}
	for _, one := range r.Items {
		row := []cell{
			revisionPhases[one.Result], {text: one.Namespace}, {text: ownerText(one.Owner)}, {text: orDash(one.Reason)},
			{text: one.Name}, {text: orDash(one.NewName)},
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
	for _, one := range r.Items {
		if one.Message == "" || one.Result == revision.Retained {
			continue
		}
		mark, tone := "!", attention
		if one.Result == revision.Failed {
			mark, tone = "✗", bad
		}
		fmt.Fprintf(&text, "\n%s/%s\n  %s %s\n", one.Namespace, one.Name, s.paint(tone, mark+" "+orDash(one.Reason)+":"), one.Message)
		if what := remedy.Of[one.Reason].Command; what != "" {
			fmt.Fprintf(&text, "    → %s\n", what)
		}
	}
	if len(r.Items) > 0 {
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
		{c.Retained, "upgraded, the old one retained"}, {c.Held, "held"}, {c.Pending, "pending"}, {c.Deferred, "deferred"},
		{c.Blocked, "blocked"}, {c.Failed, "failed"}, {c.Orphaned, "left alone"},
	} {
		if part.n > 0 {
			parts = append(parts, Number(part.n)+" "+part.what)
		}
	}
	parts = append(parts, "in "+Duration(r.DurationSeconds))
	return Count(c.Discovered, "revision", "revisions") + ": " + strings.Join(parts, ", ")
}
