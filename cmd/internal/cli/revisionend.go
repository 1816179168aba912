package cli

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/revision"
)

// askRevisions shows what would be done and returns an error unless the answer is yes.
func (a *app) askRevisions(ctx context.Context, s *revisionSession, items []revision.Item) error {
	list := report.NewRevisionPlanList(items, nil)
	if err := report.WriteRevisionPlan(a.console, a.style(a.streams.ErrOut, format{}), list); err != nil {
		return err
	}
	a.console.printf("\nUpgrade them on %s? [y/N] ", s.where())
	return a.confirm(ctx)
}

// endRevisions prints the report, chooses the code and says how to go on.
func (a *app) endRevisions(ctx context.Context, f format, p *revisionPass, began time.Time) error {
	r := p.report()
	r.DurationSeconds = time.Since(began).Round(time.Millisecond).Seconds()
	err := writeDocument(a.streams.Out, f, r, r.Names(), func(w io.Writer) error {
		return report.WriteRevisionRun(w, a.style(a.streams.Out, f), r)
	})
	if err != nil {
		return err
	}
	a.sayRetained(p)
	code := revisionRunCode(p.counts, p.results)
	switch end := ended(ctx); {
	case p.err == nil:
		return exit(code)
	case end == OK:
		a.console.problem(p.session.explain(ctx, p.err))
		return exit(worst(code, Error))
	case end == TimedOut:
		a.console.printf("stopped by --timeout; go on with: %s\n", a.commandLine())
		return exit(worst(code, end))
	default:
		a.console.printf("interrupted; go on with: %s\n", a.commandLine())
		return exit(worst(code, end))
	}
}

// sayRetained names the command that ends what this one began.
func (a *app) sayRetained(p *revisionPass) {
	if n, until := p.kept(revision.RolledBack); n > 0 {
		a.console.printf("run again after %s to remove %s: %s\n", clockTime(until, a.clock.Now()),
			report.Count(n, "new revision", "new revisions"), a.commandLine())
	}
	n, until := p.kept(revision.Retained)
	if n == 0 {
		return
	}
	a.console.printf("run again after %s to remove %s: %s\n", clockTime(until, a.clock.Now()),
		report.Count(n, "old revision", "old revisions"), a.commandLine())
	namespaces := p.namespaces()
	for _, name := range namespaces[:min(len(namespaces), maxRollbackHints)] {
		a.console.printf("until then, to go back: %s\n", a.hint("revision rollback --all --namespace="+name))
	}
	if more := len(namespaces) - maxRollbackHints; more > 0 {
		a.console.printf("and so in %s\n", report.Count(int64(more), "more namespace", "more namespaces"))
	}
}

// maxRollbackHints bounds the lines of hints, since a rollback is of one namespace.
const maxRollbackHints = 5

// namespaces are those in which something is retained, in order.
func (p *revisionPass) namespaces() []string {
	var all []string
	for _, r := range p.results {
		if r.Phase == revision.Retained && !slices.Contains(all, r.Namespace) {
			all = append(all, r.Namespace)
		}
	}
	return all
}

// revisionRunCode: what failed was not written to, so that a run that did nothing
// else was refused. What is kept for good, as asked for, is not pending. A reference that
// names what is gone never is the end of a run, whatever else was done.
func revisionRunCode(c revision.Counts, results []revision.Result) Code {
	done := c.Succeeded+c.Relabelled+c.RolledBack+c.Retained+c.Held > 0
	pending := c.Pending+c.Deferred+c.Held > 0
	partial := c.Blocked+c.Failed > 0 && done
	for _, r := range results {
		pending = pending || r.Phase == revision.Retained && !r.Until.IsZero()
		partial = partial || slices.Contains([]string{revision.ReasonUnanswered, revision.ReasonForbidden, revision.ReasonDangling}, r.Reason)
	}
	switch {
	case partial:
		return Partial
	case c.Blocked+c.Failed > 0:
		return Refused
	case pending:
		return Pending
	}
	return OK
}
