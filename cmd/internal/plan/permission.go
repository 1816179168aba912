package plan

import (
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamepermission"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/resource/resourcepermission"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionpermission"
)

// Permissions are those of `godwit plan`.
var Permissions = permission.Command{Name: "plan", Of: permission.CRDs, List: permissionsOf}

// permissionsOf returns the permissions to read all domains. A domain that the user may not read is NotChecked. Managed
// resources are custom resources in scope. Finding references to versions that are not served needs the permissions of
// crd-doctor, to list all objects, including Secrets. The installation is the namespace of the migrations that commands carry out, which only a hub has.
func permissionsOf(s permission.Scope) []permission.Permission {
	s.Listed, s.Namespace = true, ""
	all := crdpermission.Plan.Permissions(s)
	optional := append(revisionpermission.Plan.Permissions(s), clusterpermission.ListMigrations(), clusterpermission.FindStored(), resourcepermission.ReadJournal(), externalnamepermission.ListEvents())
	if s.Installation != "" {
		optional = append(optional, clusterpermission.ListStored(s.Installation))
	}
	for _, p := range optional {
		p.Need = permission.Optional
		all = append(all, p)
	}
	return all
}
