// Package externalnamepermission lists the permissions for each command of `godwit externalname`.
package externalnamepermission

import "github.com/godwit-dev/godwit/cmd/internal/permission"

// Commands. Plan is also for ready, and for save to a file. Apply is also for rollback, and for restore from a file.
var (
	Plan  = permission.Command{Name: "externalname-plan", Of: permission.ManagedResources, List: forPlan}
	Apply = permission.Command{Name: "externalname-run", Of: permission.ManagedResources, List: forApply}
)

// forPlan reads the CRD, for the version at which managed resources are read, and the managed
// resources.
func forPlan(s permission.Scope) []permission.Permission {
	all := s.ReadCRDs()
	for _, r := range s.Objects() {
		all = append(all, s.In(r, permission.Required, "list"))
	}
	return all
}

// forApply writes annotations and management policies.
func forApply(s permission.Scope) []permission.Permission {
	all := forPlan(s)
	for _, r := range s.Objects() {
		all = append(all, s.In(r, permission.Required, "get", "patch"))
	}
	return all
}
