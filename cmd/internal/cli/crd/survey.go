package crd

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/report/crdreport"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

// finding is one definition as it was found.
type finding struct {
	name     string
	requests *atomic.Int64 // all that were sent for it
	migrator *crdmigrator.Migrator
	facts    crdmigrator.Facts
	plan     crdmigrator.Plan
	lacks    *cli.ActionableError // permissions that are missing
	problem  *cli.ActionableError // it could not be read
}

// surveyTries is how often one definition is read: a loaded server answers 429
// to a few requests, and its Retry-After is a second.
const surveyTries = 4

// survey observes definitions concurrently and plans for each. It stops at the
// first sign that the server itself is gone.
func (s *session) survey(ctx context.Context, names []string) ([]finding, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	findings := make([]finding, len(names))
	next := make(chan int)
	var readers sync.WaitGroup
	for range min(len(names), walk.DefaultMaxInFlight) {
		readers.Go(func() {
			for i := range next {
				f := &findings[i]
				f.name, f.requests = names[i], &atomic.Int64{}
				if err := s.find(kube.CountRequests(cli.About(ctx, f.name), f.requests), f); err != nil {
					if _, gone := cli.Unreachable(err); gone {
						cancel(s.explain(ctx, err))
					}
					f.problem = s.explain(ctx, err)
				}
			}
		})
	}
	for i := range names {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	readers.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.suggestNames(ctx, findings)
	return findings, nil
}

func (s *session) find(ctx context.Context, f *finding) error {
	var err error
	if f.migrator, err = s.migratorOf(); err != nil {
		return err
	}
	return patiently(ctx, func() error {
		if f.facts, err = f.migrator.Observe(ctx, f.name); err == nil {
			f.plan = crdmigrator.PlanFor(f.facts, s.policy)
		}
		return err
	})
}

// patiently reads again what a loaded server has answered with a fault that
// may cure itself.
func patiently(ctx context.Context, read func() error) error {
	for try := 1; ; try++ {
		err := read()
		if err == nil {
			return nil
		}
		wait, again := walk.Transient(err)
		var status apierrors.APIStatus
		if try == surveyTries || !again || !errors.As(err, &status) {
			return err
		}
		if cause := walk.Wait(ctx, max(wait, time.Second)); cause != nil {
			return cause
		}
	}
}

// item is the finding in the form of the contract.
func (f finding) item(w remedy.Writer) crdreport.Plan {
	if f.problem != nil {
		item := crdreport.Plan{Name: f.name, State: string(crdmigrator.Blocked), ManagedFields: string(crdmigrator.ManagedFieldsUnknown)}
		item.Blockers = append(item.Blockers, crdreport.NewProblem(f.problem.Blocker(), w))
		return item
	}
	return crdreport.Plan{
		Name:           f.name,
		State:          string(f.plan.State),
		StorageVersion: f.plan.StorageVersion,
		ServedVersions: f.plan.ServedVersions,
		StoredVersions: f.plan.StoredVersions,
		Objects:        f.plan.Objects,
		Unlisted:       crdreport.UnlistedOf(f.plan.Unlisted, w),
		ManagedFields:  string(f.plan.ManagedFields),
		Blockers:       crdreport.NewProblems(f.plan.Blockers, w),
		Warnings:       crdreport.NewProblems(f.plan.Warnings, w),
		Preflight:      f.plan.Preflight,
	}
}
