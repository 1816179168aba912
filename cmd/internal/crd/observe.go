package crd

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

// finding is the state of one CRD before the command acts.
type finding struct {
	name     string
	requests *atomic.Int64 // all requests for this CRD
	migrator *storageversion.Migrator
	facts    decision.Facts
	plan     decision.Plan
	lacks    *frame.ActionableError // missing permissions
	problem  *frame.ActionableError // why the CRD could not be read
}

// readAttempts is the number of attempts to read one CRD: a loaded API server answers a few
// requests with 429, and its Retry-After is one second.
const readAttempts = 4

// observe reads CRDs concurrently and plans for each. It stops as soon as the API server
// itself is unreachable.
func (s *session) observe(ctx context.Context, names []string) ([]finding, error) {
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
				if err := s.observeOne(kube.CountRequests(frame.About(ctx, f.name), f.requests), f); err != nil {
					if _, unreachable := frame.Unreachable(err); unreachable {
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

func (s *session) observeOne(ctx context.Context, f *finding) error {
	var err error
	if f.migrator, err = s.newMigrator(); err != nil {
		return err
	}
	return RetryRead(ctx, func() error {
		if f.facts, err = f.migrator.Observe(ctx, f.name); err == nil {
			f.plan = decision.PlanFor(f.facts, s.policy)
		}
		return err
	})
}

// suggestNames adds similar names to errors about CRDs that do not exist.
func (s *session) suggestNames(ctx context.Context, findings []finding) {
	var known []string
	for i := range findings {
		f := &findings[i]
		if f.problem == nil || !errors.Is(f.problem, decision.ErrNotFound) {
			continue
		}
		if known == nil {
			var err error
			if known, err = s.Names(ctx, ""); err != nil {
				return
			}
		}
		f.problem.Remedy = frame.DidYouMean(frame.Suggest(f.name, known), f.problem.Remedy)
	}
}

// RetryRead retries a read that a loaded API server answered with a transient error.
func RetryRead(ctx context.Context, read func() error) error {
	for attempt := 1; ; attempt++ {
		err := read()
		if err == nil {
			return nil
		}
		wait, again := walk.Transient(err)
		var status apierrors.APIStatus
		if attempt == readAttempts || !again || !errors.As(err, &status) {
			return err
		}
		if cause := walk.Wait(ctx, max(wait, time.Second)); cause != nil {
			return cause
		}
	}
}

// item returns the finding as an item of the JSON output.
func (f finding) item(w remedy.Writer) crdreport.Plan {
	if f.problem != nil {
		item := crdreport.Plan{Name: f.name, State: string(decision.Blocked), ManagedFields: string(decision.ManagedFieldsUnknown)}
		item.Blockers = append(item.Blockers, render.NewProblem(f.problem.Finding(), w))
		return item
	}
	return crdreport.PlanOf(f.plan, w)
}
