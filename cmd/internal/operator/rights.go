package operator

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// Rights has the ServiceAccount of the manager, and the feature and objects that it needs permissions for.
type Rights struct {
	// Namespace and ServiceAccount are the manager's own.
	Namespace, ServiceAccount string
	// Feature that it runs; empty means StorageVersionMigrator, which alone asks for
	// Groups and Writes.
	Feature string
	// Groups are the API groups whose objects it may migrate; "*" is every one.
	Groups []string
	// Writes that its configuration or a CRDMigration may name; none means
	// storageversion.WritePatch.
	Writes []decision.Write
}

// Objects returns the roles and their bindings. They have no unused permission.
func (r Rights) Objects() []client.Object {
	if r.Feature == "" {
		r.Feature = StorageVersionMigrator
	}
	all := permission.Add(roles(r.Feature, r.Namespace), "", r.migrated()...)
	return permission.Bind(all, []rbacv1.Subject{permission.ServiceAccount(r.Namespace, r.ServiceAccount)},
		func(permission.Role) string { return r.ServiceAccount })
}

// ownKinds are migrated like any other.
var ownKinds = []string{"controllerrevisionupgrades", "controllerrevisionupgradetriggers", "crdmigrations"}

// migrated returns the rules for migrated objects. The rules for the manager's own kinds come from a marker.
func (r Rights) migrated() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	if slices.Contains(r.Writes, decision.WriteUpdate) {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: ownKinds, Verbs: []string{"update"},
		})
	}
	verbs, status := r.verbs()
	for _, group := range r.Groups {
		rules = append(rules, rule(group, "*", verbs...))
		if status {
			rules = append(rules, rule(group, "*/status", "patch"))
		}
	}
	return rules
}

// verbs returns the verbs for a write. They always contain patch, which cleans managedFields.
func (r Rights) verbs() (verbs []string, status bool) {
	verbs = []string{"list", "patch"}
	for _, w := range r.Writes {
		switch w {
		case decision.WriteUpdate:
			verbs = []string{"get", "list", "patch", "update"}
		case decision.WriteStatusPatch, decision.WriteStatusApply:
			status = true
		}
	}
	return verbs, status
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}
