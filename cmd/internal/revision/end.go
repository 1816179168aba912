package revision

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionreport"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// end prints the report and how to resume, and returns the exit code.
func end(ctx context.Context, a *frame.App, f frame.Output, p *pass, began time.Time) error {
	r := p.report()
	r.DurationSeconds = time.Since(began).Round(time.Millisecond).Seconds()
	var names []string
	if f.Value == "name" {
		names = r.Items.Names()
	}
	err := frame.WriteDocument(a.Streams.Out, f, r, names, func(w io.Writer) error {
		return revisionreport.WriteRun(w, a.Style(a.Streams.Out, f), r)
	})
	if err != nil {
		return err
	}
	printIncomplete(a, p.unconfirmed())
	printRetained(a, p)
	return a.ExitAfter(ctx, frame.Ending{Code: runCode(p.counts, p.rows), Err: p.err, Explain: p.session.explain})
}

// printRetained prints the command that deletes the retained revisions.
func printRetained(a *frame.App, p *pass) {
	if n, until := p.retainedRevisions(revision.RolledBack); n > 0 {
		a.Console.Printf("run again %sto delete %s: %s\n", timeAfter(until, a.Clock.Now()),
			render.Count(n, "new revision", "new revisions"), a.CommandLine())
	}
	n, until := p.retainedRevisions(revision.Retained)
	if n == 0 {
		return
	}
	a.Console.Printf("run again %sto delete %s: %s\n", timeAfter(until, a.Clock.Now()),
		render.Count(n, "old revision", "old revisions"), a.CommandLine())
	namespaces := p.namespaces()
	if !p.session.installed.ReadsAll() { // the old revisions are at versions that it can't read
		namespaces = nil
	}
	for _, name := range namespaces[:min(len(namespaces), maxRollbackHints)] {
		a.Console.Printf("to roll back until then: %s\n", a.Hint("revision rollback --all --namespace="+name))
	}
	if more := len(namespaces) - maxRollbackHints; more > 0 {
		a.Console.Printf("and likewise in %s, or in all: %s\n", render.Count(int64(more), "more namespace", "more namespaces"),
			a.Hint("revision rollback --all --all-namespaces"))
	}
}

// timeAfter returns a future time in words. It returns empty for a past time, such as an overdue deletion.
func timeAfter(until, now time.Time) string {
	if !until.After(now) {
		return ""
	}
	return "after " + clockTime(until, now) + " "
}

// clockTime returns a time of day, with the date if it is not today.
func clockTime(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05 MST")
	}
	return t.Format("2006-01-02 15:04:05 MST")
}

// maxRollbackHints bounds the printed commands for one namespace each.
const maxRollbackHints = 5

// namespaces are those with a retained revision, in order.
func (p *pass) namespaces() []string {
	var all []string
	for _, one := range p.rows {
		if of := one.outcome(); of.phase == revision.Retained && !slices.Contains(all, of.run.Namespace) {
			all = append(all, of.run.Namespace)
		}
	}
	return all
}

// runCode returns Refused if nothing was written. A revision that is kept without a limit is not pending. A reference
// to a missing revision, or an incomplete scan, is always Partial.
func runCode(c revision.Counts, rows []row) frame.Code {
	done := c.Succeeded+c.Relabelled+c.RolledBack+c.Retained+c.InUse > 0
	pending := c.Pending+c.Deferred+c.InUse > 0
	partial := c.Blocked+c.Failed > 0 && done
	for _, one := range rows {
		of := one.outcome()
		pending = pending || of.phase == revision.Retained && of.run.RetainedUntil != nil || of.run.Reason == decision.ReasonUnreferenced.Name
		partial = partial || of.phase == revision.Failed && of.begun
		partial = partial || slices.Contains([]string{decision.ReasonUnanswered.Name, decision.ReasonForbidden.Name, decision.ReasonDangling.Name, decision.ReasonUnconfirmed.Name}, of.run.Reason)
	}
	switch {
	case partial:
		return frame.Partial
	case c.Blocked+c.Failed > 0:
		return frame.Refused
	case pending:
		return frame.Pending
	}
	return frame.OK
}
