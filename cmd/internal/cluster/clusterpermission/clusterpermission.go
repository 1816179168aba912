// Package clusterpermission lists the permissions for each command of `godwit cluster`, and for the agent of a hub.
package clusterpermission

// The chart gives the agent these roles.
//go:generate sh -c "go run ../../../godwit rbac --for=hub-agent --serviceaccount=OWN:hub-agent > ../../../../charts/godwit/files/roles/hub-agent.yaml"

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/cmd/hub/agent"
	hubv1alpha1 "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
)

// Commands.
var (
	// Preflight is `godwit cluster plan` and status on the global hub.
	Preflight = permission.Command{Name: "cluster-plan", Of: permission.Migrations, Installation: permission.ManagerNamespace, List: forPreflight}
	// Hub is what `godwit cluster plan` reads of each hub.
	Hub = permission.Command{Name: "cluster-hub", Of: permission.Hub, Installation: permission.AgentNamespace, List: forHub}
	// Run is `godwit cluster run`, abort and retry.
	Run = permission.Command{Name: "cluster-run", Of: permission.Migrations, Installation: permission.ManagerNamespace, List: forRun}
	// Move is `godwit cluster move` on each of the two hubs: what an agent does there, and what a preflight reads.
	Move = permission.Command{Name: "cluster-move", Of: permission.Hub, Installation: direct.Namespace, List: forMove}
	// Rejoin is `godwit cluster move` with the context of a cluster whose hub is lost, on this cluster. On the target hub it is [Move].
	Rejoin = permission.Command{Name: "cluster-rejoin", Of: permission.Hub, Installation: klusterlet.DefaultNamespace, List: forRejoin}
	// Enroll is `godwit cluster enroll`.
	Enroll = permission.Command{Name: "cluster-enroll", Of: permission.Hub, Installation: permission.ManagerNamespace, List: forEnroll}
	// Agent is `godwit agent`, which runs as a ServiceAccount.
	Agent = permission.Command{Name: "hub-agent", Of: permission.Agent, List: forAgent}
)

var migrations = schema.GroupResource{Group: hubv1alpha1.GroupVersion.Group, Resource: "managedclustermigrations"}

// forAgent returns the permissions of the agent in the namespace of the scope.
func forAgent(s permission.Scope) []permission.Permission {
	var all []permission.Permission
	for _, p := range agent.Permissions(s.Namespace) {
		all = append(all, permission.Permission{
			Verbs: p.Verbs, Resource: schema.GroupResource{Group: p.Group, Resource: p.Resource}, Names: p.Names, Namespace: p.Namespace,
		})
	}
	return all
}

// forMove is the permissions of an agent and of a preflight in one process.
func forMove(s permission.Scope) []permission.Permission {
	return append(forAgent(permission.Scope{Namespace: s.Installation}), forHub(s)...)
}

// forRejoin is enough for every work that a lost hub may have applied.
func forRejoin(s permission.Scope) []permission.Permission {
	return OnCluster(s.Installation, []schema.GroupResource{{Group: "*", Resource: "*"}})
}

// OnCluster returns the permissions on a cluster whose hub is lost, and whose agents are in a namespace. Works of the lost hub have applied
// objects of the resources.
func OnCluster(namespace string, applied []schema.GroupResource) []permission.Permission {
	const operators, works = "operator.open-cluster-management.io", "work.open-cluster-management.io"
	all := []permission.Permission{
		{Verbs: []string{"get", "patch"}, Resource: schema.GroupResource{Group: operators, Resource: "klusterlets"}, Names: []string{klusterlet.Name}},
		{Verbs: []string{"get"}, Resource: schema.GroupResource{Resource: "namespaces"}, Names: []string{metav1.NamespaceSystem}},
		{Verbs: []string{"get", "create", "patch", "delete"}, Resource: schema.GroupResource{Resource: "secrets"}, Namespace: namespace},
		{Verbs: []string{"list", "delete"}, Resource: schema.GroupResource{Group: works, Resource: "appliedmanifestworks"}},
		{Verbs: []string{"get", "delete"}, Resource: schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}, Names: []string{klusterlet.RoleName}},
	}
	for _, r := range applied {
		all = append(all, permission.Permission{Verbs: []string{"get", "patch"}, Resource: r})
	}
	return all
}

// forPreflight reads the global hub.
func forPreflight(s permission.Scope) []permission.Permission {
	return ofPreflight(preflight.GlobalPermissions(s.Namespace, s.Installation))
}

// forHub reads a hub.
func forHub(s permission.Scope) []permission.Permission {
	return ofPreflight(preflight.ViewPermissions(s.Installation))
}

// forRun creates migrations, and aborts them by an annotation.
func forRun(s permission.Scope) []permission.Permission {
	return append(forPreflight(s), permission.Permission{Verbs: []string{"create", "patch"}, Resource: migrations, Namespace: s.Namespace})
}

// forEnroll writes the keys of hubs on the global hub. A user with this permission can act as any hub.
func forEnroll(s permission.Scope) []permission.Permission {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	return []permission.Permission{
		{Verbs: []string{"get"}, Resource: schema.GroupResource{Group: "cluster.open-cluster-management.io", Resource: "managedclusters"}},
		{Verbs: []string{"get", "update"}, Resource: configMaps, Names: []string{manager.EnrolledHubs}, Namespace: s.Installation},
		{Verbs: []string{"create"}, Resource: configMaps, Namespace: s.Installation},
		// The migrations in which a hub takes part with another key.
		{Verbs: []string{"list"}, Resource: migrations},
	}
}

func ofPreflight(list []preflight.Permission) []permission.Permission {
	all := make([]permission.Permission, len(list))
	for i, p := range list {
		all[i] = permission.Permission{Verbs: p.Verbs, Resource: schema.GroupResource{Group: p.Group, Resource: p.Resource}, Names: p.Names, Namespace: p.Namespace}
	}
	return all
}

// ListMigrations is the permission to read the status of all migrations of managed clusters.
func ListMigrations() permission.Permission {
	return permission.Permission{Verbs: []string{"list"}, Resource: migrations}
}

// FindStored is the permission to see whether a hub has the namespace of the migrations that a command carries out itself.
func FindStored() permission.Permission {
	return permission.Permission{Verbs: []string{"get"}, Resource: schema.GroupResource{Resource: "namespaces"}, Names: []string{direct.Namespace}}
}

// ListStored is the permission to read the migrations that a command carries out itself.
func ListStored(namespace string) permission.Permission {
	return permission.Permission{Verbs: []string{"list"}, Resource: schema.GroupResource{Resource: "configmaps"}, Namespace: namespace}
}
