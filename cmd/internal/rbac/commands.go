package rbac

import (
	"slices"

	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamepermission"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/plan"
	"github.com/godwit-dev/godwit/cmd/internal/resource/resourcepermission"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionpermission"
	"github.com/godwit-dev/godwit/cmd/internal/version"
)

// commands are the values of --for beside the manager, in the order of the help.
var commands = []permission.Command{
	plan.Permissions,
	crdpermission.Plan, crdpermission.Run, crdpermission.Verify, crdpermission.Check, crdpermission.Doctor, crdpermission.Rescue,
	resourcepermission.Plan, resourcepermission.Run, resourcepermission.Verify,
	revisionpermission.Plan, revisionpermission.Status, revisionpermission.Run, revisionpermission.Rollback, revisionpermission.Fix,
	externalnamepermission.Plan, externalnamepermission.Apply, externalnamepermission.Audit,
	clusterpermission.Preflight, clusterpermission.Hub, clusterpermission.Move, clusterpermission.Rejoin, clusterpermission.Run, clusterpermission.Enroll, clusterpermission.Agent,
	version.Permissions,
}

// needed is the command of --for. It is the zero Command without one, and for the manager.
func (o *rbacOptions) needed() permission.Command {
	if i := slices.IndexFunc(commands, func(c permission.Command) bool { return c.Name == o.command.Value }); i >= 0 {
		return commands[i]
	}
	return permission.Command{}
}
