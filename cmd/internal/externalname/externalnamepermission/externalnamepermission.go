// Package externalnamepermission lists the permissions for each command of `godwit externalname`.
package externalnamepermission

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/cmd/internal/permission"
)

// Commands. Plan is also for ready, and for save to a file. Apply is also for rollback, and for restore from a file.
var (
	Plan  = permission.Command{Name: "externalname-plan", Of: permission.ManagedResources, List: forPlan}
	Apply = permission.Command{Name: "externalname-run", Of: permission.ManagedResources, List: forApply}
	Audit = permission.Command{Name: "externalname-audit", Of: permission.CRDs, List: forAudit}
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

// forAudit reads the events of creations as well.
func forAudit(s permission.Scope) []permission.Permission {
	all := s.ReadCRDs()
	for _, r := range s.Objects() {
		all = append(all, s.In(r, permission.Optional, "list"))
	}
	return append(all, ListEvents())
}

// ListEvents is the permission to find creations that are not in the annotations.
func ListEvents() permission.Permission {
	return permission.Permission{Resource: schema.GroupResource{Resource: "events"}, Verbs: []string{"list"}, Need: permission.Optional}
}

// forApply writes annotations and management policies.
func forApply(s permission.Scope) []permission.Permission {
	all := forPlan(s)
	for _, r := range s.Objects() {
		all = append(all, s.In(r, permission.Required, "get", "patch"))
	}
	return all
}
