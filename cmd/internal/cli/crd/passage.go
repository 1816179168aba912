package crd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/report/crdreport"
	"github.com/godwit-dev/godwit/internal/storageversion"
)

// maxReplans bounds how often one run follows a CRD that changes under it. The
// library counts over an hour, and blocks.
const maxReplans = 3

// passage is how a plan was carried out: the report of the last pass over the objects,
// what follows it, and whether any pass settled some objects by a write.
type passage struct {
	plan   storageversion.Plan
	dryRun bool
	runs   bool  // nothing keeps it from beginning
	view   *view // on the board; a clean CRD has none
	report storageversion.Report
	wrote  bool
	err    error
	step   storageversion.Step
}

// end takes in the end of a pass, or the error that kept one from beginning.
func (p *passage) end(after storageversion.Report, err error) {
	if after.Storage.Counts.Total() > 0 || after.Storage.Complete {
		p.report = after
	}
	p.wrote = p.wrote || after.Storage.Counts.Migrated+after.Storage.Counts.Unchanged > 0
	p.err, p.step = err, storageversion.Next(p.plan, p.report, err, p.step.History)
}

// carryOut makes passes until one is the last: it waits while the API servers have
// not settled, and plans again when the CRD changed. A command leaves every other
// retry to its user.
func (r *runner) carryOut(ctx context.Context, m *storageversion.Migrator, p *passage) {
	for replans := 0; ; {
		r.show(p)
		p.end(m.Run(ctx, p.plan, func(now storageversion.Report) { r.moved(p, now) }))
		var unsettled *storageversion.NotSettledError
		replan := p.step.Action == storageversion.ActionReplan
		switch {
		case ctx.Err() != nil || p.step.Action != storageversion.ActionWait && (!replan || replans == maxReplans):
			return
		case replan:
			replans++
			r.board.note(fmt.Sprintf("%s: %s; planning again", p.plan.Name, cli.OneLine(p.err)))
		case errors.As(p.err, &unsettled):
			r.board.settling(p.view, unsettled)
		}
		if cause := r.slots.pause(ctx, p.step.After); cause != nil {
			p.err = cause
			return
		}
		if !replan {
			continue
		}
		plan, err := m.Plan(ctx, p.plan.Name)
		if err != nil {
			p.end(storageversion.Report{}, err)
			return
		}
		p.plan = plan
	}
}

// result renders the last step. A pass that did not reach its end counts as what it
// leaves behind: Partial if any object was written, Failed if none was. A dry run on
// the server predicts: refusals make it Partial, as the run would be.
func (p passage) result() crdreport.Result {
	switch {
	case p.terminating():
		return crdreport.Terminating
	case p.err == nil && p.step.Action == storageversion.ActionDone:
		return p.finished()
	case p.err == nil || p.wrote:
		return crdreport.Partial
	case p.step.Action == storageversion.ActionUnknown:
		return crdreport.Unknown
	case p.step.Reason == storageversion.ReasonBlocked:
		return crdreport.Blocked
	}
	return crdreport.Failed
}

// finished tells work that was done from none that was to do.
func (p passage) finished() crdreport.Result {
	trimmed := p.report.Storage.Complete && !p.dryRun && p.plan.State != storageversion.Clean // by this command or by another client
	if trimmed || p.wrote || p.report.ManagedFields.Counts.Migrated > 0 {
		return crdreport.Succeeded
	}
	return crdreport.NoChange
}

// terminating reports a CRD that is being deleted, or is gone since the run began.
func (p passage) terminating() bool {
	return p.step.Reason == storageversion.ReasonCRDNotFound ||
		slices.ContainsFunc(p.step.Blockers, func(b godwit.Blocker) bool { return b.Reason == storageversion.ReasonTerminating })
}
