package crd

import (
	"slices"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// passage is how a plan was carried out: the report of the last pass over the objects,
// what follows it, and whether any pass settled some objects by a write.
type passage struct {
	plan   decision.Plan
	dryRun bool
	runs   bool  // nothing keeps it from beginning
	view   *view // on the board; a clean CRD has none
	report decision.Report
	wrote  bool
	err    error
	step   decision.Step
}

// end takes in the end of a pass, or the error that kept one from beginning.
func (p *passage) end(after decision.Report, err error) {
	if after.Storage.Counts.Total() > 0 || after.Storage.Complete {
		p.report = after
	}
	p.wrote = p.wrote || after.Storage.Counts.Migrated+after.Storage.Counts.Unchanged > 0
	p.err, p.step = err, decision.Next(p.plan, p.report, err, p.step.History)
}

// result renders the last step. A pass that did not reach its end counts as what it
// leaves behind: Partial if any object was written, Failed if none was. A dry run on
// the server predicts: refusals make it Partial, as the run would be.
func (p passage) result() crdreport.Result {
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

// finished tells work that was done from none that was to do.
func (p passage) finished() crdreport.Result {
	trimmed := p.report.Storage.Complete && !p.dryRun && p.plan.State != decision.Clean // by this command or by another client
	if trimmed || p.wrote || p.report.ManagedFields.Counts.Migrated > 0 {
		return crdreport.Succeeded
	}
	return crdreport.NoChange
}

// terminating reports a CRD that is being deleted, or is gone since the run began.
func (p passage) terminating() bool {
	return p.step.Reason == decision.ReasonCRDNotFound ||
		slices.ContainsFunc(p.step.Blockers, func(b godwit.Finding) bool { return b.Reason == decision.ReasonTerminating })
}
