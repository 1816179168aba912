package crd

import (
	"fmt"
	"slices"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// question prints the plan, and returns what the user has to confirm. also describes what else the run does, in whole lines.
func question(a *frame.App, s *session, findings []finding, also string) (string, error) {
	if !anyReady(findings) {
		return fmt.Sprintf("%sEvery object is at its storage version. Read the objects on %s, and clean managedFields that name\n"+
			"versions which are not served?", also, s.Where()), nil
	}
	var plans []crdreport.Plan
	for _, f := range findings {
		if f.problem == nil && f.plan.State != decision.Clean {
			plans = append(plans, f.item(a.Remedies()))
		}
	}
	if err := crdreport.WritePlans(a.Console, a.Style(a.Streams.ErrOut, frame.Output{}), plans, true); err != nil {
		return "", err
	}
	return fmt.Sprintf("\n%sMigrate them on %s?", also, s.Where()), nil
}

// printWarnings prints the warnings of the plan if the command does not ask.
func printWarnings(a *frame.App, findings []finding) {
	for _, f := range findings {
		for _, w := range f.plan.Warnings {
			a.Console.Printf("warning: %s\n", render.NewProblem(w, a.Remedies()).Line())
		}
	}
}

// mayWrite reports whether a run writes objects, or may find managedFields to clean.
func mayWrite(findings []finding) bool {
	return anyReady(findings) || slices.ContainsFunc(findings, func(f finding) bool {
		return f.problem == nil && f.plan.State == decision.Clean && f.plan.Objects != nil && *f.plan.Objects > 0
	})
}

// anyReady reports whether a run would migrate objects.
func anyReady(findings []finding) bool {
	for _, f := range findings {
		if f.problem == nil && f.plan.State != decision.Clean && len(f.plan.HardBlockers()) == 0 {
			return true
		}
	}
	return false
}

// refuseUnreadable refuses a run of named CRDs if one of them cannot be read: a typing error
// must not leave half of a list migrated.
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
			items[i].Result, items[i].Failures = crdreport.Failed, crdFailure(f.name, f.problem)
			continue
		}
		items[i].Result, items[i].Failures = crdreport.Blocked, []godwit.Failure{{
			Name: f.name, Finding: godwit.Finding{Reason: render.ReasonNotStarted, Message: "not begun, because " + unreadable + " can't be read"},
		}}
	}
	return items, true
}
