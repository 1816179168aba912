// Package revisionpermission lists the permissions for each command of `godwit revision`.
package revisionpermission

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
)

// Commands.
var (
	Plan     = permission.Command{Name: "revision-plan", List: forPlan}
	Status   = permission.Command{Name: "revision-status", List: forPlan}
	Run      = permission.Command{Name: "revision-run", List: forRun}
	Rollback = permission.Command{Name: "revision-rollback", List: forRollback}
	Fix      = permission.Command{Name: "revision-fix", List: forFix}
)

var controllerRevisions = schema.GroupResource{Group: appsv1.GroupName, Resource: "controllerrevisions"}

// forPlan has the permissions to read. All lists are required: a reference in an unread list could be lost.
func forPlan(s permission.Scope) []permission.Permission {
	all := []permission.Permission{permission.CRDPermission(permission.Required, "get")}
	for _, r := range slices.Concat(s.Family.Referrers, s.Family.Readers) {
		all = append(all, s.In(r.Resource, permission.Required, "list"))
	}
	// To distinguish a typo from a namespace without revisions, and a namespace that is being deleted from one that
	// lost a revision.
	namespaces := permission.Permission{Resource: schema.GroupResource{Resource: "namespaces"}, Verbs: []string{"get"}, Need: permission.Optional}
	if s.Namespace != "" {
		namespaces.Names = []string{s.Namespace}
	}
	return append(all, namespaces)
}

// forRun writes references and revisions. The new revisions have owners, whose
// deletion they block as the old ones do.
func forRun(s permission.Scope) []permission.Permission {
	all := append(forPlan(s), references(s)...)
	all = append(all, s.In(controllerRevisions, permission.Required, "get", "create", "update", "delete"))
	for _, o := range s.Family.Owners {
		all = append(all, s.In(schema.GroupResource{Group: o.Group, Resource: o.Resource + "/finalizers"}, permission.RequiredIfEnforced, "update"))
	}
	return all
}

// forRollback lists unfinished upgrades of the manager. It creates a revision only if a restore of a snapshot would
// look up a missing one, or if an object references a revision while it is removed. Without the permission, it does not
// change the snapshot, and reports the reference.
func forRollback(s permission.Scope) []permission.Permission {
	all := append(forPlan(s), references(s)...)
	for _, o := range s.Family.Owners {
		all = append(all, s.In(schema.GroupResource{Group: o.Group, Resource: o.Resource + "/finalizers"}, permission.Optional, "update"))
	}
	return append(all,
		s.In(controllerRevisions, permission.Optional, "create"),
		s.In(controllerRevisions, permission.Required, "get", "update", "delete"),
		s.In(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "controllerrevisionupgrades"}, permission.Optional, "list"))
}

// forFix writes one revision, and reads the object that becomes its controller.
func forFix(s permission.Scope) []permission.Permission {
	all := []permission.Permission{permission.CRDPermission(permission.Required, "get"), s.In(controllerRevisions, permission.Required, "get", "update")}
	for _, o := range s.Family.Owners {
		all = append(all,
			s.In(schema.GroupResource{Group: o.Group, Resource: o.Resource}, permission.Required, "get"),
			s.In(schema.GroupResource{Group: o.Group, Resource: o.Resource + "/finalizers"}, permission.RequiredIfEnforced, "update"))
	}
	return all
}

// references are written to the objects that hold them.
func references(s permission.Scope) []permission.Permission {
	var all []permission.Permission
	for _, r := range s.Family.Referrers {
		if r.Resource == controllerRevisions {
			continue // their references are fixed
		}
		all = append(all, s.In(r.Resource, permission.Required, "get", "patch"))
		for _, sub := range r.Subresources {
			all = append(all, s.In(schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource + "/" + sub}, permission.Required, "patch"))
		}
	}
	return all
}
