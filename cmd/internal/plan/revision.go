package plan

import (
	"context"

	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionpermission"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionreport"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
)

// family is that of all revisions which this release upgrades.
var family = kubevirt.Family{}

// hasRevisions reports whether the cluster has a kind that ControllerRevisions store.
func (s *scanner) hasRevisions() bool {
	for _, r := range family.Describe().Resources {
		if s.served(r.String()) {
			return true
		}
	}
	return false
}

// planRevisions scans the whole cluster.
func (s *scanner) planRevisions(ctx context.Context) planreport.Row {
	u, err := revision.New(s.config, family, revision.Options{Limiter: s.limiter})
	if err != nil {
		return s.failed(ctx, planreport.Revisions, err, nil)
	}
	var items []decision.Item
	inventory, err := u.InventoryEach(ctx, func(i decision.Item) error {
		items = append(items, i)
		return nil
	})
	if err != nil {
		return s.failed(ctx, planreport.Revisions, err, revisionPermissions())
	}
	return planreport.RevisionRow(revisionreport.NewPlanList(items, &inventory, s.app.Remedies()), s.app.Hint)
}

func revisionPermissions() []permission.Permission {
	return revisionpermission.Plan.Permissions(permission.Scope{Family: family.Describe()})
}
