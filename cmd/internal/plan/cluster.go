package plan

import (
	"context"
	"slices"
	"sync"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
)

// rowsOf returns the rows of one cluster, in the order of the domains. It always returns at least one.
func rowsOf(ctx context.Context, a *frame.App, d depth) []planreport.Row {
	s, err := dial(ctx, a, d)
	if err != nil {
		return []planreport.Row{unreachable(ctx, err)}
	}
	var rows []planreport.Row
	if s.crds, err = s.migrator.CRDs(ctx); err != nil {
		rows = s.withoutCRDs(ctx, err)
	} else {
		rows = s.domains(ctx)
	}
	uid := s.ClusterUID(ctx)
	for i := range rows {
		rows[i].ClusterUID = uid
	}
	return rows
}

// domains reads all domains that the cluster has, at the same time.
func (s *scanner) domains(ctx context.Context) []planreport.Row {
	var crds, references, names, revisions, hub, resources []planreport.Row
	var scans sync.WaitGroup
	scans.Go(func() {
		row, counts := s.planCRDs(ctx)
		crds = append(crds, row)
		if managed, has := s.managedCRDs(counts); has {
			names = append(names, s.planNames(ctx, managed))
		}
	})
	if s.depth.references {
		scans.Go(func() { references = append(references, s.planReferences(ctx)) })
	}
	scans.Go(func() {
		if row, has := s.planResources(ctx); has {
			resources = append(resources, row)
		}
	})
	if s.hasRevisions() {
		scans.Go(func() { revisions = append(revisions, s.planRevisions(ctx)) })
	}
	if s.servesMigrations() || s.hasManagedClusters() {
		scans.Go(func() { hub = append(hub, s.planHub(ctx)) })
	}
	scans.Wait()
	return slices.Concat(crds, references, revisions, names, hub, resources)
}

// withoutCRDs returns the rows of a cluster whose CRDs can't be listed: a row for each domain whose API group the
// cluster serves. None of them is Clean.
func (s *scanner) withoutCRDs(ctx context.Context, err error) []planreport.Row {
	if _, gone := frame.Unreachable(err); gone && ctx.Err() == nil {
		return []planreport.Row{unreachable(ctx, s.Explain(ctx, err))}
	}
	needed := []permission.Permission{permission.ReadCRD("")}
	rows := []planreport.Row{s.failed(ctx, planreport.CRDs, err, needed)}
	if s.depth.references {
		rows = append(rows, s.failed(ctx, planreport.References, err, needed))
	}
	if s.servesGroup(ctx, family.Describe().Resources[0].Group) {
		rows = append(rows, s.planRevisions(ctx))
	}
	if s.servesGroup(ctx, api.GroupVersion.Group) {
		rows = append(rows, s.failed(ctx, planreport.Hubs, err, needed))
	}
	return rows
}
