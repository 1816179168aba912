package plan

import (
	"context"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

// planCRDs plans all CRDs. A CRD whose scan was interrupted is Unknown.
func (s *scanner) planCRDs(ctx context.Context) (planreport.Row, map[string]int64) {
	surroundings, err := s.migrator.Surroundings(ctx)
	if err != nil {
		return s.failed(ctx, planreport.CRDs, err, crdPermissions()), nil
	}
	plans := make([]decision.Plan, len(s.crds))
	s.each(func(i int) { plans[i] = s.planCRD(ctx, surroundings, &s.crds[i]) })
	row := planreport.CRDRow(s.items(plans), s.app.Hint)
	if n := unlistable(plans); n > 0 {
		row = row.Lacking(s.lackingLists(ctx, n))
	}
	counts := map[string]int64{}
	for _, p := range plans {
		if p.Objects != nil {
			counts[p.Name] = *p.Objects
		}
	}
	return row, counts
}

// each calls plan for each CRD, several at a time.
func (s *scanner) each(plan func(i int)) {
	next := make(chan int)
	var readers sync.WaitGroup
	for range min(len(s.crds), walk.DefaultMaxInFlight) {
		readers.Go(func() {
			for i := range next {
				plan(i)
			}
		})
	}
	for i := range s.crds {
		next <- i
	}
	close(next)
	readers.Wait()
}

func (s *scanner) planCRD(ctx context.Context, surroundings *storageversion.Surroundings, crd *apiextensionsv1.CustomResourceDefinition) decision.Plan {
	facts, err := s.observe(ctx, surroundings, crd)
	if err != nil {
		problem := unfinished(ctx)
		if ctx.Err() == nil {
			problem = s.Explain(ctx, err)
		}
		return decision.Plan{Name: crd.Name, State: decision.StateUnknown, Unlisted: &decision.UnlistedError{Finding: problem.Finding()}}
	}
	return planWithout(facts)
}

// observe reads the facts about one CRD: of one with work as `crd plan` does, and of others without requests that are the same for
// all.
func (s *scanner) observe(ctx context.Context, surroundings *storageversion.Surroundings, crd *apiextensionsv1.CustomResourceDefinition) (decision.Facts, error) {
	if kube.Trimmed(crd) || !s.depth.preflight {
		return s.migrator.ObserveIn(ctx, surroundings, crd)
	}
	facts, err := s.migrator.Observe(ctx, crd.Name)
	facts.Denied = nil // of a run; the plan of the domain names them
	return facts, err
}

// planWithout plans a CRD whose objects the user may not list: status.storedVersions may still say
// that there is work. Without that, nothing is known.
func planWithout(facts decision.Facts) decision.Plan {
	plan := decision.PlanFor(facts, decision.Policy{})
	if facts.Unlisted == nil || !render.IsForbidden(facts.Unlisted.Reason) || plan.Trimmed {
		return plan
	}
	known := facts
	known.Unlisted = nil
	plan = decision.PlanFor(known, decision.Policy{})
	plan.Unlisted = facts.Unlisted
	return plan
}

func (s *scanner) items(plans []decision.Plan) []crdreport.Plan {
	items := make([]crdreport.Plan, len(plans))
	for i, p := range plans {
		items[i] = crdreport.PlanOf(p, s.app.Remedies())
	}
	return items
}

func unlistable(plans []decision.Plan) (n int64) {
	for _, p := range plans {
		if p.Unlisted != nil && render.IsForbidden(p.Unlisted.Reason) {
			n++
		}
	}
	return n
}

// lackingLists returns one blocker for all CRDs whose objects the user may not list.
func (s *scanner) lackingLists(ctx context.Context, n int64) render.Problem {
	user := s.WhoAmI(ctx)
	return render.Problem{
		Reason: render.ReasonForbidden.Name, Message: fmt.Sprintf("%s lacks permissions: list the objects of %s", user, render.CRDs(n)), Remedy: s.Purpose.Remedy(user),
	}
}

func crdPermissions() []permission.Permission {
	return []permission.Permission{permission.ReadCRD("")}
}
