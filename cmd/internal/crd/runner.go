package crd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/preflight"
	"github.com/godwit-dev/godwit/walk"
)

// runner carries out the plans of several CRDs concurrently.
type runner struct {
	*session
	dryRun string
	board  *board
	slots  slots
}

// ending is how the run of one CRD ended.
type ending struct {
	crdreport.Run
	statusPatchPasses bool // a dry run of a write to the status, for objects that failed
}

// slots limits how many CRDs have a pass at the same time. A CRD that waits between two passes
// has no slot, so that it does not delay another CRD.
type slots chan struct{}

// passesAtOnce equals the default number of requests in flight: more passes would not make a
// run faster, and each pass holds two pages of objects.
const passesAtOnce = walk.DefaultMaxInFlight

func (s slots) take()    { s <- struct{}{} }
func (s slots) release() { <-s }

// pause waits without a slot, and takes one again before it returns. After an interrupt, too, it
// gets a slot, because an interrupt ends all passes.
func (s slots) pause(ctx context.Context, d time.Duration) error {
	s.release()
	defer s.take()
	return walk.Wait(ctx, d)
}

// runAll carries out the plans. They begin in the order of the findings, and the ends have the
// same order.
func (r *runner) runAll(ctx context.Context, findings []finding) []ending {
	ends := make([]ending, len(findings))
	var passes sync.WaitGroup
	for i, f := range findings {
		r.slots.take()
		p := r.begin(ctx, f)
		passes.Go(func() {
			defer r.slots.release()
			ends[i] = r.runOne(ctx, f, p)
		})
	}
	passes.Wait()
	return ends
}

// begin makes the run of one CRD, and shows the CRD on the board if nothing prevents its first pass.
func (r *runner) begin(ctx context.Context, f finding) *crdRun {
	p := &crdRun{plan: f.plan, dryRun: r.dryRun != frame.DryRunNone}
	switch refusals := f.plan.HardBlockers(); {
	case f.problem != nil:
	case len(refusals) > 0:
		p.endPass(decision.Report{}, &decision.BlockedError{CRD: f.name, Blockers: refusals})
	case ctx.Err() != nil:
		p.endPass(decision.Report{}, context.Cause(ctx))
	case f.plan.State == decision.StateUnknown && (f.lacks != nil || r.dryRun == frame.DryRunClient):
		p.endPass(decision.Report{}, f.plan.Unlisted)
	case r.dryRun == frame.DryRunClient:
		p.endPass(decision.Report{}, nil)
	default:
		p.starts = true
		r.show(p)
	}
	return p
}

// show puts a CRD on the board once it has something to migrate.
func (r *runner) show(p *crdRun) {
	if p.view == nil && p.plan.State != decision.Clean {
		p.view = r.board.begin(p.plan)
	}
}

// runOne runs one CRD and returns how the run ended.
func (r *runner) runOne(ctx context.Context, f finding, p *crdRun) ending {
	if f.problem != nil {
		return ending{Run: crdreport.Run{Name: f.name, Result: crdreport.Failed, DryRun: p.dryRun, Failures: crdFailure(f.name, f.problem)}}
	}
	began := time.Now()
	if p.starts {
		r.carryOut(kube.CountRequests(frame.About(ctx, f.name), f.requests), f.migrator, p)
	}
	item := crdreport.Run{
		Name:            f.name,
		StorageVersion:  p.plan.StorageVersion,
		Result:          p.result(),
		DryRun:          p.dryRun,
		Objects:         render.ObjectsOf(p.report.Storage.Counts),
		ManagedFields:   managedFields(p.report.ManagedFields),
		Requests:        f.requests.Load(),
		DurationSeconds: time.Since(began).Round(time.Millisecond).Seconds(),
		Trimmed:         p.report.Trimmed,
		Values:          crdreport.ValuesOf(p.report.Checkpoint.Proof),
		Unlisted:        crdreport.UnlistedOf(p.unlisted(), r.remedies),
		Failures:        r.failures(ctx, *p),
	}
	if p.view != nil {
		r.board.end(p.view, item)
	}
	end := ending{Run: item}
	if item.Result == crdreport.Partial && p.report.Storage.Counts.Failed > 0 {
		passes, err := preflight.StatusPatchPasses(ctx, f.migrator, p.plan, p.report.Storage.Failures)
		end.statusPatchPasses = err == nil && passes
	}
	return end
}

// maxReplans limits how often one run plans again because its CRD changed. The library counts
// the changes of all runs within an hour, and blocks the next run after too many.
const maxReplans = 3

// carryOut makes passes until the run ends. It waits while the API servers have not settled,
// and plans again if the CRD changed. The user starts every other retry.
func (r *runner) carryOut(ctx context.Context, m *storageversion.Migrator, p *crdRun) {
	for replans := 0; ; {
		r.show(p)
		p.endPass(m.Run(ctx, p.plan, func(now decision.Report) { r.showProgress(p, now) }))
		var unsettled *decision.NotSettledError
		replan := p.step.Action == decision.ActionReplan
		switch {
		case ctx.Err() != nil || p.step.Action != decision.ActionWait && (!replan || replans == maxReplans):
			return
		case replan:
			replans++
			r.board.note(fmt.Sprintf("%s: %s; planning again", p.plan.Name, frame.OneLine(p.err)))
		case errors.As(p.err, &unsettled):
			if p.view == nil { // a clean CRD, with managedFields to clean
				p.view = r.board.begin(p.plan)
			}
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
			p.endPass(decision.Report{}, err)
			return
		}
		p.plan = plan
	}
}

// showProgress updates the board. A clean CRD appears once a run finds managedFields to clean.
func (r *runner) showProgress(p *crdRun, now decision.Report) {
	if p.view == nil && now.ManagedFields.Counts.Total() > 0 {
		p.view = r.board.begin(p.plan)
	}
	if p.view != nil {
		r.board.update(p.view, now)
	}
}

// unlisted returns why the objects could not be listed, if that ended the run.
func (p crdRun) unlisted() *decision.UnlistedError {
	var unlisted *decision.UnlistedError
	errors.As(p.err, &unlisted)
	return unlisted
}

// failures lists the failures, those of the CRD itself first.
func (r *runner) failures(ctx context.Context, p crdRun) []godwit.Failure {
	var failures []godwit.Failure
	switch {
	case errors.As(p.err, new(*decision.BlockedError)):
		for _, b := range r.lackingForCleanup(ctx, p, p.step.Blockers) {
			failures = append(failures, render.Failure(p.plan.Name, b, r.remedies))
		}
	case p.err != nil && frame.ContextCode(ctx) != frame.OK:
		failures = []godwit.Failure{endedEarly(ctx, p)}
	case apierror.IsEndOfRun(p.err):
		failures = crdFailure(p.plan.Name, r.explain(ctx, p.err))
	case p.unlisted() != nil:
		failures = []godwit.Failure{render.Failure(p.plan.Name, p.unlisted().Finding, r.remedies)}
	case p.err != nil:
		failures = crdFailure(p.plan.Name, r.explainRun(ctx, p.err))
	}
	return append(append(failures, p.report.Storage.Failures...), p.report.ManagedFields.Failures...)
}

// endedEarly returns the failure of a CRD whose run the user or --timeout ended.
func endedEarly(ctx context.Context, p crdRun) godwit.Failure {
	f := godwit.Failure{Name: p.plan.Name, Finding: godwit.Finding{Reason: render.ReasonInterrupted, Message: "the run ended"}}
	if frame.ContextCode(ctx) == frame.TimedOut {
		f.Reason, f.Message = render.ReasonTimedOut, "--timeout ended the run"
	}
	f.Message += " after " + render.Count(p.report.Storage.Counts.Total(), "object", "objects")
	return f
}

// crdFailure returns the failure of a whole CRD for an error. It keeps the reason of the error, if the error has one.
func crdFailure(crd string, err error) []godwit.Failure {
	f := godwit.Failure{Name: crd, Finding: godwit.Finding{Reason: decision.ReasonFailed, Message: err.Error()}}
	var known *frame.ActionableError
	if errors.As(err, &known) && known.Reason != nil {
		f.Reason = known.Reason
	}
	return []godwit.Failure{f}
}

func managedFields(t decision.Tally) crdreport.ManagedFields {
	return crdreport.ManagedFields{Cleaned: t.Counts.Migrated, Deferred: t.Counts.Deferred, Failed: t.Counts.Failed}
}

// explainRun returns the text of an error. It replaces the text only if the connection
// failed.
func (r *runner) explainRun(ctx context.Context, err error) error {
	if _, unreachable := frame.Unreachable(err); unreachable {
		return r.explain(ctx, err)
	}
	return errors.New(frame.OneLine(err))
}
