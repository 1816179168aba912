package crd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/preflight"
	"github.com/godwit-dev/godwit/walk"
)

// runner carries out plans, those of several CRDs at once.
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

// slots bound how many CRDs have a pass at the same time. A CRD that waits between two passes
// has none, so that it holds up no other.
type slots chan struct{}

// passesAtOnce is the number of requests that are in flight at once by default: more passes
// would not make a run faster, and each holds two pages of objects.
const passesAtOnce = walk.DefaultMaxInFlight

func (s slots) take()    { s <- struct{}{} }
func (s slots) release() { <-s }

// pause waits without a slot. After an interrupt, too, the slot comes back: passes end then.
func (s slots) pause(ctx context.Context, d time.Duration) error {
	s.release()
	defer s.take()
	return walk.Wait(ctx, d)
}

// all carries out the plans. They begin in the order of the findings, which is also that of
// the reports.
func (r *runner) all(ctx context.Context, findings []finding) []ending {
	ends := make([]ending, len(findings))
	var passes sync.WaitGroup
	for i, f := range findings {
		r.slots.take()
		p := r.begin(ctx, f)
		passes.Go(func() {
			defer r.slots.release()
			ends[i] = r.one(ctx, f, p)
		})
	}
	passes.Wait()
	return ends
}

// begin shows a CRD on the board, unless nothing is to be done about it.
func (r *runner) begin(ctx context.Context, f finding) *passage {
	p := &passage{plan: f.plan, dryRun: r.dryRun != frame.DryRunNone}
	switch refusals := f.plan.HardBlockers(); {
	case f.problem != nil:
	case len(refusals) > 0:
		p.end(decision.Report{}, &decision.BlockedError{CRD: f.name, Blockers: refusals})
	case ctx.Err() != nil:
		p.end(decision.Report{}, context.Cause(ctx))
	case f.plan.State == decision.StateUnknown && (f.lacks != nil || r.dryRun == frame.DryRunClient):
		p.end(decision.Report{}, f.plan.Unlisted)
	case r.dryRun == frame.DryRunClient:
		p.end(decision.Report{}, nil)
	default:
		p.runs = true
		r.show(p)
	}
	return p
}

// show puts a CRD on the board once it has something to migrate.
func (r *runner) show(p *passage) {
	if p.view == nil && p.plan.State != decision.Clean {
		p.view = r.board.begin(p.plan)
	}
}

// one runs one CRD to an end, whatever that is.
func (r *runner) one(ctx context.Context, f finding, p *passage) ending {
	if f.problem != nil {
		return ending{Run: crdreport.Run{Name: f.name, Result: crdreport.Failed, Failures: whole(f.name, f.problem)}}
	}
	began := time.Now()
	if p.runs {
		r.carryOut(kube.CountRequests(frame.About(ctx, f.name), f.requests), f.migrator, p)
	}
	item := crdreport.Run{
		Name:            f.name,
		StorageVersion:  p.plan.StorageVersion,
		Result:          p.result(),
		Objects:         render.ObjectsOf(p.report.Storage.Counts),
		ManagedFields:   managedFields(p.report.ManagedFields),
		Requests:        f.requests.Load(),
		DurationSeconds: time.Since(began).Round(time.Millisecond).Seconds(),
		Trimmed:         p.report.Trimmed,
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

// maxReplans bounds how often one run follows a CRD that changes under it. The
// library counts over an hour, and blocks.
const maxReplans = 3

// carryOut makes passes until one is the last: it waits while the API servers have
// not settled, and plans again when the CRD changed. A command leaves every other
// retry to its user.
func (r *runner) carryOut(ctx context.Context, m *storageversion.Migrator, p *passage) {
	for replans := 0; ; {
		r.show(p)
		p.end(m.Run(ctx, p.plan, func(now decision.Report) { r.moved(p, now) }))
		var unsettled *decision.NotSettledError
		replan := p.step.Action == decision.ActionReplan
		switch {
		case ctx.Err() != nil || p.step.Action != decision.ActionWait && (!replan || replans == maxReplans):
			return
		case replan:
			replans++
			r.board.note(fmt.Sprintf("%s: %s; planning again", p.plan.Name, frame.OneLine(p.err)))
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
			p.end(decision.Report{}, err)
			return
		}
		p.plan = plan
	}
}

// moved shows progress. A clean CRD appears once a run finds managedFields to clean.
func (r *runner) moved(p *passage, now decision.Report) {
	if p.view == nil && now.ManagedFields.Counts.Total() > 0 {
		p.view = r.board.begin(p.plan)
	}
	if p.view != nil {
		r.board.moved(p.view, now)
	}
}

// unlisted returns why the objects could not be listed, if that ended the run.
func (p passage) unlisted() *decision.UnlistedError {
	var unlisted *decision.UnlistedError
	errors.As(p.err, &unlisted)
	return unlisted
}

// failures names the failures, those of the CRD itself first.
func (r *runner) failures(ctx context.Context, p passage) []godwit.Failure {
	var failures []godwit.Failure
	switch {
	case errors.As(p.err, new(*decision.BlockedError)):
		for _, b := range r.lackingForCleanup(ctx, p, p.step.Blockers) {
			failures = append(failures, render.Failure(p.plan.Name, b, r.remedies))
		}
	case p.err != nil && frame.ContextCode(ctx) != frame.OK:
		failures = []godwit.Failure{endedEarly(ctx, p)}
	case p.unlisted() != nil:
		failures = []godwit.Failure{render.Failure(p.plan.Name, p.unlisted().Finding, r.remedies)}
	case p.err != nil:
		failures = whole(p.plan.Name, r.explainRun(ctx, p.err))
	}
	return append(append(failures, p.report.Storage.Failures...), p.report.ManagedFields.Failures...)
}

// endedEarly is the failure of a CRD whose run the user or --timeout ended.
func endedEarly(ctx context.Context, p passage) godwit.Failure {
	f := godwit.Failure{Name: p.plan.Name, Finding: godwit.Finding{Reason: render.ReasonInterrupted, Message: "the run ended"}}
	if frame.ContextCode(ctx) == frame.TimedOut {
		f.Reason, f.Message = render.ReasonTimedOut, "--timeout ended the run"
	}
	f.Message += " after " + render.Count(p.report.Storage.Counts.Total(), "object", "objects")
	return f
}

// whole is the failure of a CRD as a whole for an error, whose reason it keeps if it has one.
func whole(crd string, err error) []godwit.Failure {
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
	_, gone := frame.Unreachable(err)
	if gone || apierrors.IsUnauthorized(err) {
		return r.explain(ctx, err)
	}
	return errors.New(frame.OneLine(err))
}
