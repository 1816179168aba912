package crd

import (
	"slices"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// crdRun is the run of one CRD: its plan, the report of the last pass over the objects, and the
// step that follows that pass.
type crdRun struct {
	plan   decision.Plan
	dryRun bool
	starts bool  // nothing prevents the first pass
	view   *view // on the board; nil for a clean CRD
	report decision.Report
	wrote  bool // some pass wrote an object
	err    error
	step   decision.Step
}

// endPass stores the report of a pass, or the error that prevented it, and decides the next step.
func (p *crdRun) endPass(after decision.Report, err error) {
	if after.Storage.Counts.Total() > 0 || after.Storage.Complete {
		p.report = after
	}
	p.wrote = p.wrote || after.Storage.Counts.Migrated+after.Storage.Counts.Unchanged > 0
	p.err, p.step = err, decision.Next(p.plan, p.report, err, p.step.History)
}

// result returns the result of the last step. If an error ended a pass, the result is Partial
// after the first written object, and Failed before. A server dry run has the result that the
// run would have: a denied write makes it Partial.
func (p crdRun) result() crdreport.Result {
	switch {
	case p.terminating():
		return crdreport.Terminating
	case p.err == nil && p.step.Action == decision.ActionDone:
		return p.finished()
	case p.err == nil || p.wrote:
		return crdreport.Partial
	case p.step.Action == decision.ActionUnknown:
		return crdreport.Unknown
	case p.step.Reason == decision.ReasonBlocked:
		return crdreport.Blocked
	}
	return crdreport.Failed
}

// finished returns Succeeded if the run changed something, Accepted or Planned for a dry run, and NoChange if there was nothing to change.
func (p crdRun) finished() crdreport.Result {
	trimmed := p.report.Storage.Complete && !p.dryRun && p.plan.State != decision.Clean // by this command or by another client
	if trimmed || p.wrote || p.report.ManagedFields.Counts.Migrated > 0 {
		return crdreport.Succeeded
	}
	switch {
	case !p.dryRun || p.plan.State == decision.Clean:
		return crdreport.NoChange
	case p.starts:
		return crdreport.Accepted
	}
	return crdreport.Planned
}

// terminating reports whether the CRD is being deleted, or was deleted since the run began.
func (p crdRun) terminating() bool {
	return p.step.Reason == decision.ReasonCRDNotFound ||
		slices.ContainsFunc(p.step.Blockers, func(b godwit.Finding) bool { return b.Reason == decision.ReasonTerminating })
}
