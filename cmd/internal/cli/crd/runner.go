package crd

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/cmd/internal/report/crdreport"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/crdmigrator/preflight"
	"github.com/godwit-dev/godwit/internal/kube"
)

// runner carries out plans.
type runner struct {
	*session
	dryRun  string
	display display
	past    []string // CRDs whose failed objects a write of the status alone gets past
}

// one runs one definition to an end, whatever that is.
func (r *runner) one(ctx context.Context, f finding) crdreport.Run {
	if f.problem != nil {
		return crdreport.Run{Name: f.name, Result: crdreport.Failed, Failures: whole(f.name, f.problem.Error())}
	}
	began := time.Now()
	p := passage{plan: f.plan, dryRun: r.dryRun != cli.DryRunNone}
	switch refusals := f.plan.HardBlockers(); {
	case len(refusals) > 0:
		p.end(crdmigrator.Report{}, &crdmigrator.BlockedError{CRD: f.name, Blockers: refusals})
	case ctx.Err() != nil:
		p.end(crdmigrator.Report{}, context.Cause(ctx))
	case f.plan.State == crdmigrator.StateUnknown && (f.lacks != nil || r.dryRun == cli.DryRunClient):
		p.end(crdmigrator.Report{}, f.plan.Unlisted)
	case r.dryRun == cli.DryRunClient:
		p.end(crdmigrator.Report{}, nil)
	default:
		r.carryOut(kube.CountRequests(cli.About(ctx, f.name), f.requests), &p)
	}
	item := crdreport.Run{
		Name:            f.name,
		StorageVersion:  p.plan.StorageVersion,
		Result:          p.result(),
		Objects:         crdreport.ObjectsOf(p.report.Storage.Counts),
		ManagedFields:   managedFields(p.report.ManagedFields),
		Requests:        f.requests.Load(),
		DurationSeconds: time.Since(began).Round(time.Millisecond).Seconds(),
		Trimmed:         p.report.Trimmed,
		Unlisted:        crdreport.UnlistedOf(p.unlisted()),
		Failures:        r.failures(ctx, p),
	}
	if p.shown {
		r.display.end(item)
	}
	if item.Result == crdreport.Partial && p.report.Storage.Counts.Failed > 0 {
		if passes, err := preflight.StatusPatchPasses(ctx, r.Migrator, p.plan, p.report.Storage.Failures); err == nil && passes {
			r.past = append(r.past, f.name)
		}
	}
	return item
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

// unlisted is why the objects could not be listed, if that ended the run.
func (p passage) unlisted() *crdmigrator.UnlistedError {
	var unlisted *crdmigrator.UnlistedError
	errors.As(p.err, &unlisted)
	return unlisted
}

// failures names what failed, the definition itself first.
func (r *runner) failures(ctx context.Context, p passage) []godwit.Failure {
	var failures []godwit.Failure
	switch {
	case errors.As(p.err, new(*crdmigrator.BlockedError)):
		for _, b := range r.lackingForCleanup(ctx, p, p.step.Blockers) {
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

func managedFields(t crdmigrator.Tally) crdreport.ManagedFields {
	return crdreport.ManagedFields{Cleaned: t.Counts.Migrated, Deferred: t.Counts.Deferred, Failed: t.Counts.Failed}
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
