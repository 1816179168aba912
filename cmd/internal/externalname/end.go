package externalname

import (
	"context"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fleet"
)

// ending has the result of a run that wrote.
type ending struct {
	session *session
	output  frame.Output
	report  fleet.Report
	err     error
	// rollback returns the command that restores the old names.
	rollback bool
	// selector is the flag that selects by labels; empty without it.
	selector string
}

// endRun prints the report, chooses the exit code, and says how to resume.
func endRun(ctx context.Context, a *frame.App, e ending) error {
	s := e.session
	list := externalnamereport.RunList(s.kind, e.report.Results, s.remedies)
	if err := printRun(a, e.output, list); err != nil {
		return err
	}
	if e.report.Stopped {
		a.Console.Printf("stopped: a managed resource was not renamed; the rest were not started\n")
	}
	back := a.Hint("externalname rollback --resource=" + s.resource + scopeFlag(s.namespace) + e.selector)
	if held := heldBy(e.report); e.rollback && len(held) > 0 {
		a.Console.Printf("the renaming has not ended of %s: %s; to restore all old names there: %s\n",
			render.Count(int64(len(held)), "managed resource", "managed resources"), strings.Join(held, ", "), back)
	} else if e.rollback && e.report.Count(fleet.PhaseRenamed) > 0 {
		a.Console.Printf("to roll back: %s\n", back)
	}
	return exitAfterRun(ctx, a, e)
}

// heldBy names the managed resources whose renaming has begun and not ended. The batch bounds them.
func heldBy(r fleet.Report) []string {
	var names []string
	for _, one := range r.Results {
		if one.Unfinished {
			names = append(names, render.ObjectName(one.Namespace, one.Name))
		}
	}
	return names
}

func printRun(a *frame.App, f frame.Output, list render.List[externalnamereport.Run]) error {
	return frame.Print(a, f, list, externalnamereport.WriteRun)
}

func scopeFlag(namespace string) string {
	if namespace == "" {
		return " --all-namespaces"
	}
	return " --namespace=" + namespace
}

// exitAfterRun returns the exit code of a run.
func exitAfterRun(ctx context.Context, a *frame.App, e ending) error {
	return a.ExitAfter(ctx, frame.Ending{Code: runCode(e.report), Err: e.err, Explain: e.session.explain})
}

// runCode returns Refused if no managed resource has its intended name, and Partial if some have.
func runCode(r fleet.Report) frame.Code {
	done := r.Count(fleet.PhaseRenamed) + r.Count(fleet.PhaseRolledBack) + r.Count(fleet.PhaseRestored) + r.Count(fleet.PhaseHandedOver)
	bad := r.Count(fleet.PhaseUndone) + r.Count(fleet.PhaseFailed)
	left := r.Count(fleet.PhaseDeferred) + r.Count(fleet.PhaseInterrupted) + r.Count(fleet.PhaseSkipped)
	switch {
	case bad > 0 && done > 0:
		return frame.Partial
	case bad > 0:
		return frame.Refused
	case left > 0:
		return frame.Pending
	}
	return frame.OK
}
