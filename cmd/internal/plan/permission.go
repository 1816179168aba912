package plan

import (
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/resource/resourcepermission"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionpermission"
)

// Permissions are those of `godwit plan`.
var Permissions = permission.Command{Name: "plan", Of: permission.CRDs, List: permissionsOf}

// permissionsOf reads all domains. A domain that may not be read is NotChecked. Managed resources are custom
// resources in scope. What names versions that CRDs do not serve takes the permissions of crd-doctor, to list
// everything, Secrets as well.
func permissionsOf(s permission.Scope) []permission.Permission {
	s.Listed, s.Namespace = true, ""
	all := crdpermission.Plan.Permissions(s)
	for _, p := range append(revisionpermission.Plan.Permissions(s), clusterpermission.ListMigrations(), resourcepermission.ReadJournal()) {
		p.Need = permission.Optional
		all = append(all, p)
	}
	return all
}
