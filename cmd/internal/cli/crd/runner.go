package crd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// maxReplans bounds how often one run follows a definition that changes
	// under it. The library counts over an hour, and blocks.
	maxReplans = 3

	// pollServers is how often servers are looked at that have not adopted the
	// storage version; they renew their leases every 10 s.
	pollServers = 2 * time.Second

	// lookAgain is how long the servers are left unwatched while only time is
	// waited for; one is called silent after 15 s.
	lookAgain = 5 * time.Second
)

// runner carries out plans.
type runner struct {
	*session
	dryRun  string
	display display
	past    []string // CRDs whose failed objects a write of the status alone gets past
}

// one runs one definition to an end, whatever that is.
func (r *runner) one(ctx context.Context, f finding) report.CRDRunReport {
	if f.problem != nil {
		return report.CRDRunReport{Name: f.name, Result: report.Failed, Failures: whole(f.name, f.problem.Error())}
	}
	began := time.Now()
	p := passage{plan: f.plan, dryRun: r.dryRun != cli.DryRunNone}
	switch refusals := f.plan.Refusals(); {
	case len(refusals) > 0:
		p.err = &crdmigrator.BlockedError{CRD: f.name, Blockers: refusals}
	case ctx.Err() != nil:
		p.err = context.Cause(ctx)
	case f.plan.State == crdmigrator.StateUnknown && (f.lacks != nil || r.dryRun == cli.DryRunClient):
		p.err = f.plan.Unlisted
	case r.dryRun == cli.DryRunClient:
	default:
		r.carryOut(kube.CountRequests(cli.About(ctx, f.name), f.requests), &p)
	}
	item := report.CRDRunReport{
		Name:            f.name,
		StorageVersion:  p.plan.StorageVersion,
		Result:          p.result(),
		Objects:         report.ObjectsOf(p.report.Storage.Counts),
		ManagedFields:   managedFields(p.report.ManagedFields),
		Requests:        f.requests.Load(),
		DurationSeconds: time.Since(began).Round(time.Millisecond).Seconds(),
		Trimmed:         p.report.Trimmed,
		Unlisted:        report.UnlistedOf(p.unlisted()),
		Failures:        r.failures(ctx, p),
	}
	if p.shown {
		r.display.end(item)
	}
	if item.Result == report.Partial && p.report.Storage.Counts.Failed > 0 {
		if passes, err := r.StatusPasses(ctx, p.plan, p.report.Storage.Failures); err == nil && passes {
			r.past = append(r.past, f.name)
		}
	}
	return item
}

// passage is how a plan was carried out: the report of the last pass over the
// objects, and whether any pass settled some by a write.
type passage struct {
	plan   crdmigrator.Plan
	dryRun bool
	shown  bool // on the display; what is clean is not
	report crdmigrator.Report
	wrote  bool
	err    error
}

// carryOut runs the plan until it is through or can't go on: it waits while the
// servers have not settled, and plans again when the definition changed.
func (r *runner) carryOut(ctx context.Context, p *passage) {
	for replans := 0; ; {
		if !p.shown && p.plan.State != crdmigrator.Clean {
			p.shown = true
			r.display.begin(p.plan)
		}
		var after crdmigrator.Report
		after, p.err = r.Run(ctx, p.plan, func(now crdmigrator.Report) { r.moved(p, now) })
		if after.Storage.Counts.Total() > 0 || after.Storage.Complete {
			p.report = after
		}
		p.wrote = p.wrote || after.Storage.Counts.Migrated+after.Storage.Counts.Unchanged > 0
		var unsettled *crdmigrator.NotSettledError
		switch {
		case errors.As(p.err, &unsettled):
			r.display.settling(unsettled)
			if cause := walk.Wait(ctx, settlePause(unsettled)); cause != nil {
				p.err = cause
				return
			}
		case errors.Is(p.err, crdmigrator.ErrChanged) && replans < maxReplans && ctx.Err() == nil:
			replans++
			r.display.note(fmt.Sprintf("%s: %s; planning again", p.plan.Name, cli.OneLine(p.err)))
			plan, err := r.Plan(ctx, p.plan.Name)
			if err != nil {
				p.err = err
				return
			}
			p.plan = plan
		default:
			return
		}
	}
}

// moved shows progress. What is clean shows up once its managedFields turn out
// not to be.
func (r *runner) moved(p *passage, now crdmigrator.Report) {
	if !p.shown && now.ManagedFields.Counts.Total() > 0 {
		p.shown = true
		r.display.begin(p.plan)
	}
	if p.shown {
		r.display.moved(now)
	}
}

// settlePause is until the time is over, or until servers are to be looked at
// again: one that falls silent is only noticed by looking.
func settlePause(e *crdmigrator.NotSettledError) time.Duration {
	if len(e.Servers) > 0 || e.Wait <= 0 {
		return pollServers
	}
	return min(e.Wait, lookAgain)
}

// result says what the run amounts to. An error counts as what it leaves
// behind: Partial if anything was migrated or found to be at the storage version
// by writing it, Failed if nothing was. A dry run on the server predicts:
// refusals make it Partial, as the run would be.
func (p passage) result() report.Result {
	var blocked *crdmigrator.BlockedError
	unlisted := p.unlisted()
	switch {
	case terminating(p.err):
		return report.Terminating
	case p.err == nil && !(p.report.Storage.Counts.Settled() && p.report.ManagedFields.Counts.Settled()):
		return report.Partial
	case p.err == nil && p.report.Storage.Complete && !p.dryRun && p.plan.State != crdmigrator.Clean:
		return report.Succeeded
	case p.err == nil && (p.wrote || p.report.ManagedFields.Counts.Migrated > 0):
		return report.Succeeded // somebody else trimmed, or only managedFields were left to clean
	case p.err == nil:
		return report.Nothing
	case p.wrote:
		return report.Partial
	case errors.As(p.err, &blocked), unlisted != nil && unlisted.Blocks():
		return report.Blocked
	case unlisted != nil:
		return report.Unknown
	}
	return report.Failed
}

// unlisted is why the objects could not be listed, if that ended the run.
func (p passage) unlisted() *crdmigrator.UnlistedError {
	var unlisted *crdmigrator.UnlistedError
	errors.As(p.err, &unlisted)
	return unlisted
}

// terminating reports a CRD that is being deleted, or is gone since the run began.
func terminating(err error) bool {
	var blocked *crdmigrator.BlockedError
	return errors.Is(err, crdmigrator.ErrNotFound) || errors.As(err, &blocked) &&
		slices.ContainsFunc(blocked.Blockers, func(b godwit.Blocker) bool { return b.Reason == crdmigrator.ReasonTerminating })
}

// failures names what failed, the definition itself first.
func (r *runner) failures(ctx context.Context, p passage) []godwit.Failure {
	var failures []godwit.Failure
	var blocked *crdmigrator.BlockedError
	switch {
	case errors.As(p.err, &blocked):
		for _, b := range blocked.Blockers {
			failures = append(failures, whole(p.plan.Name, fmt.Sprintf("%s: %s; %s", b.Reason, b.Message, b.Remedy))...)
		}
	case p.err != nil && cli.Ended(ctx) != cli.OK:
		failures = whole(p.plan.Name, fmt.Sprintf("%s after %s", reasonEnded(ctx),
			report.Count(p.report.Storage.Counts.Total(), "object", "objects")))
	case p.unlisted() != nil:
		b := p.unlisted().Blocker()
		failures = whole(p.plan.Name, fmt.Sprintf("%s: %s; %s", b.Reason, b.Message, b.Remedy))
	case p.err != nil:
		failures = whole(p.plan.Name, r.explainRun(ctx, p.err))
	}
	return append(append(failures, p.report.Storage.Failures...), p.report.ManagedFields.Failures...)
}

func reasonEnded(ctx context.Context) string {
	if cli.Ended(ctx) == cli.TimedOut {
		return "stopped by --timeout"
	}
	return "interrupted"
}

// whole is a failure of the definition, not of one of its objects.
func whole(crd, reason string) []godwit.Failure {
	return []godwit.Failure{{Name: crd, Reason: reason}}
}

func managedFields(t crdmigrator.Tally) report.ManagedFields {
	return report.ManagedFields{Cleaned: t.Counts.Migrated, Deferred: t.Counts.Deferred, Failed: t.Counts.Failed}
}

// explainRun keeps the words of an error of a run, which know more, unless the
// trouble is with the connection itself.
func (r *runner) explainRun(ctx context.Context, err error) string {
	_, gone := cli.Unreachable(err)
	if gone || apierrors.IsUnauthorized(err) {
		return r.explain(ctx, err).Error()
	}
	return cli.OneLine(err)
}
