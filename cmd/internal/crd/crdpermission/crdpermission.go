// Package crdpermission lists what RBAC has to allow for each command of `godwit crd`.
package crdpermission

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/crdmigrator/rescue"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/preflight"
)

// Commands.
var (
	Plan   = permission.Command{Name: "crd-plan", Of: permission.CRDs, List: forPlan}
	Run    = permission.Command{Name: "crd-run", Of: permission.CRDs, List: forRun}
	Verify = permission.Command{Name: "crd-verify", Of: permission.CRDs, List: permission.Scope.ReadCRDs}
	Check  = permission.Command{Name: "crd-check", Of: permission.CRDs, List: forCheck}
	Rescue = permission.Command{Name: "crd-rescue", Of: permission.CRDs, List: forRescue}
	Doctor = permission.Command{Name: "crd-doctor", Of: permission.CRDs, List: forDoctor}
)

// forPlan needs no permission to write: a plan without it leaves out the dry run of the write.
func forPlan(s permission.Scope) []permission.Permission {
	all := s.ReadCRDs()
	for _, r := range s.Objects() {
		all = append(all, permission.Permission{Resource: r, Verbs: []string{"list"}, Need: permission.Optional})
	}
	return append(all, permission.OfGrants(storageversion.OptionalPermissions(schema.GroupResource{}, storageversion.Options{}), permission.Optional)...)
}

func forRun(s permission.Scope) []permission.Permission {
	o := storageversion.Options{Policy: decision.Policy{Write: s.Write}}
	all := s.ReadCRDs()
	for _, r := range s.Objects() {
		all = append(all, permission.OfGrants(storageversion.RequiredPermissions(r, o), permission.Required)...)
	}
	for _, r := range s.Objects() {
		all = append(all, permission.OfGrants(storageversion.OptionalPermissions(r, o), permission.Optional)...)
	}
	for _, d := range s.Dependents {
		r := schema.ParseGroupResource(d)
		all = append(all, permission.Permission{Resource: r, Verbs: []string{"list", "patch"}, Need: permission.Optional},
			permission.Permission{Resource: r, Verbs: []string{"delete"}, Need: permission.RequiredIfEnforced})
		if strings.Contains(r.Group, ".") { // the repair reads the storage version in the CRD of the dependent
			all = append(all, permission.CRDPermission(permission.Optional, "get", d))
		}
	}
	return append(all, permission.OfGrants(preflight.OptionalPermissions(), permission.Optional)...)
}

// forDoctor allows a list of every resource: RBAC can't restrict a list to metadata.
func forDoctor(permission.Scope) []permission.Permission {
	return []permission.Permission{
		permission.CRDPermission(permission.Required, "get"), permission.CRDPermission(permission.Required, "list"),
		{Resource: schema.GroupResource{Group: "*", Resource: "*"}, Verbs: []string{"list"}, Need: permission.Optional},
	}
}

// forCheck has create, update and patch, because a dry run needs the permission of the write itself.
func forCheck(s permission.Scope) []permission.Permission {
	all := append(s.ReadCRDs(),
		permission.CRDPermission(permission.Optional, "create"),
		permission.CRDPermission(permission.Optional, "update", s.CRDs...),
		permission.CRDPermission(permission.Optional, "patch", s.CRDs...))
	for _, r := range s.Objects() {
		all = append(all, permission.Permission{Resource: r, Verbs: []string{"list"}})
	}
	return all
}

// forRescue has the permissions of a migration. They suffice to write the CRD before and after the migration, too.
func forRescue(s permission.Scope) []permission.Permission {
	all := s.ReadCRDs()
	for _, r := range s.Objects() {
		all = append(all, permission.OfGrants(rescue.Grants(r), permission.Required)...)
	}
	return append(all, permission.OfGrants(storageversion.OptionalPermissions(schema.GroupResource{}, storageversion.Options{}), permission.Optional)...)
}
