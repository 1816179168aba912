package plan

import (
	"context"

	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/resource/resourcepermission"
	"github.com/godwit-dev/godwit/internal/storageversion/resource"
)

// planResources finds an interrupted run over resources of the API server itself. No API shows whether their objects
// need a write, so without such a run it returns no row.
func (s *scanner) planResources(ctx context.Context) (planreport.Row, bool) {
	r, err := resource.New(s.config, resource.Options{Limiter: s.limiter, ReadOnly: true})
	if err != nil {
		return s.failed(ctx, planreport.Resources, err, nil), true
	}
	interrupted, err := r.Interrupted(ctx)
	switch {
	case err != nil:
		return s.failed(ctx, planreport.Resources, err, []permission.Permission{resourcepermission.ReadJournal()}), true
	case len(interrupted) == 0:
		return planreport.Row{}, false
	}
	left := make([]planreport.Left, len(interrupted))
	for i, one := range interrupted {
		left[i] = planreport.Left(one)
	}
	return planreport.ResourceRow(left, s.app.Hint), true
}
