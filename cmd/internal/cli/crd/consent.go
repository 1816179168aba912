package crd

import (
	"context"
	"slices"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/cmd/internal/report/crdreport"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// ask shows what would be done and returns an error unless the answer is yes.
func ask(ctx context.Context, a *cli.App, s *session, findings []finding) error {
	if anyReady(findings) {
		var plans []crdreport.Plan
		for _, f := range findings {
			if f.problem == nil && f.plan.State != crdmigrator.Clean {
				plans = append(plans, f.item(a.Remedies()))
			}
		}
		if err := crdreport.WritePlans(a.Console, a.Style(a.Streams.ErrOut, cli.Output{}), plans, true); err != nil {
			return err
		}
		a.Console.Printf("\nMigrate them on %s? [y/N] ", s.Where())
	} else {
		a.Console.Printf("Every object is at its storage version. Look for managedFields that name versions which are\n"+
			"not served, and clean them, on %s? [y/N] ", s.Where())
	}
	return a.Confirm(ctx)
}

// sayWarnings tells whoever is not asked what the plan would have told.
func sayWarnings(a *cli.App, findings []finding) {
	for _, f := range findings {
		for _, w := range f.plan.Warnings {
			a.Console.Printf("warning: %s\n", crdreport.NewProblem(w, a.Remedies()).Line())
		}
	}
}

// mayWrite: a run would write something, or may find that it has to.
func mayWrite(findings []finding) bool {
	return anyReady(findings) || slices.ContainsFunc(findings, func(f finding) bool {
		return f.problem == nil && f.plan.State == crdmigrator.Clean && f.plan.Objects != nil && *f.plan.Objects > 0
	})
}

// anyReady: a run would migrate something.
func anyReady(findings []finding) bool {
	for _, f := range findings {
		if f.problem == nil && f.plan.State != crdmigrator.Clean && len(f.plan.HardBlockers()) == 0 {
			return true
		}
	}
	return false
}

// refuseUnreadable refuses a run of named definitions when one of them can't be
// read: a typo must not leave half of a list migrated.
func refuseUnreadable(sel Selection, findings []finding) ([]crdreport.Run, bool) {
	unreadable := ""
	for _, f := range findings {
		if f.problem != nil {
			unreadable = f.name
		}
	}
	if unreadable == "" || len(sel.Names) == 0 {
		return nil, false
	}
	items := make([]crdreport.Run, len(findings))
	for i, f := range findings {
		items[i] = crdreport.Run{Name: f.name, StorageVersion: f.plan.StorageVersion, Requests: f.requests.Load()}
		if f.problem != nil {
			items[i].Result, items[i].Failures = crdreport.Failed, whole(f.name, f.problem)
			continue
		}
		items[i].Result, items[i].Failures = crdreport.Blocked, []godwit.Failure{{
			Name: f.name, Reason: report.ReasonNotStarted, Message: "not begun, because " + unreadable + " can't be read",
		}}
	}
	return items, true
}
