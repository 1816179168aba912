package preflight

import (
	"strings"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
)

// Permission is a permission that the user needs.
type Permission struct {
	Group, Resource string
	// Names of the objects; none means all.
	Names []string
	// Namespace of the objects; empty means all, or objects without a namespace.
	Namespace string
	Verbs     []string
}

const (
	ocm        = "cluster.open-cluster-management.io"
	migrations = "global-hub.open-cluster-management.io"
)

// GlobalPermissions returns the permissions on the global hub. namespace is the namespace of the migrations; empty
// means all namespaces.
func GlobalPermissions(namespace, managerNamespace string) []Permission {
	return []Permission{
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Names: []string{api.CRDName}, Verbs: []string{"get"}},
		{Group: ocm, Resource: "managedclusters", Verbs: []string{"get", "list"}},
		{Group: migrations, Resource: "managedclustermigrations", Verbs: []string{"get", "list"}},
		{Resource: "configmaps", Names: []string{manager.EnrolledHubs, manager.HubHeartbeats}, Namespace: managerNamespace, Verbs: []string{"get"}},
		// The state of migrations.
		{Resource: "configmaps", Namespace: namespace, Verbs: []string{"get"}},
	}
}

// ViewPermissions returns the permissions on a hub whose agent is in a namespace. All of them are read-only.
func ViewPermissions(agentNamespace string) []Permission {
	all := []Permission{
		{Group: ocm, Resource: "managedclusters", Verbs: []string{"get"}},
		{Group: ocm, Resource: "managedclustersets", Verbs: []string{"get"}},
		{Group: ocm, Resource: "placements", Namespace: agentNamespace, Verbs: []string{"get"}},
		{Group: ocm, Resource: "placementdecisions", Namespace: agentNamespace, Verbs: []string{"list"}},
		{Group: "work.open-cluster-management.io", Resource: "manifestworks", Verbs: []string{"get", "list"}},
		{Group: "addon.open-cluster-management.io", Resource: "managedclusteraddons", Verbs: []string{"list"}},
		{Group: "coordination.k8s.io", Resource: "leases", Names: []string{cluster.LeaseName}, Verbs: []string{"get"}},
		{Group: "coordination.k8s.io", Resource: "leases", Names: []string{AgentLease}, Namespace: agentNamespace, Verbs: []string{"get"}},
		{Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Verbs: []string{"list"}},
		{Group: cluster.KlusterletConfigKind.Group, Resource: "klusterletconfigs", Verbs: []string{"list"}},
		{Resource: "namespaces", Verbs: []string{"get"}},
	}
	for _, kind := range movedKinds() {
		// The plural of every kind in the rules is regular, except one that is a plural already.
		plural := strings.TrimSuffix(strings.ToLower(kind.Kind), "s") + "s"
		all = append(all, Permission{Group: kind.Group, Resource: plural, Verbs: []string{"list"}})
	}
	return all
}
