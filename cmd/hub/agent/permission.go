package agent

import (
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/csr"
	"github.com/godwit-dev/godwit/cmd/hub/target"
)

// Permission is a permission that an agent needs.
type Permission struct {
	Group string
	// Resource with its subresource after a slash.
	Resource string
	// Names of the objects; none means all.
	Names []string
	// Namespace of the objects; empty means all, or objects without a namespace.
	Namespace string
	Verbs     []string
}

// Permissions returns exactly the permissions that an agent in a namespace needs. The namespaces of managed clusters
// are not known before a migration, so these permissions are for all namespaces.
func Permissions(namespace string) []Permission {
	const (
		ocm, work, operators, importer = "cluster.open-cluster-management.io", "work.open-cluster-management.io", "operator.open-cluster-management.io", "config.open-cluster-management.io"
		rbac, metal3, hive, installs   = "rbac.authorization.k8s.io", "metal3.io", "hive.openshift.io", "extensions.hive.openshift.io"
	)
	moves := []string{"get", "list", "create", "update", "patch", "delete"}
	shares := []string{"get", "create", "patch", "delete"}
	all := []Permission{
		// The agent's Secrets, its Lease, and the Placements of users.
		{Group: "", Resource: "secrets", Namespace: namespace, Verbs: []string{"get", "list", "create", "update"}},
		{Group: "coordination.k8s.io", Resource: "leases", Namespace: namespace, Verbs: []string{"get", "create", "update"}},
		// Leader election records its events in the core group.
		{Group: "", Resource: "events", Namespace: namespace, Verbs: []string{"create", "patch"}},
		{Group: ocm, Resource: "placements", Namespace: namespace, Verbs: []string{"get"}},
		{Group: ocm, Resource: "placementdecisions", Namespace: namespace, Verbs: []string{"list"}},
		// Clusters, and the leases that prove their hub.
		{Group: ocm, Resource: "managedclusters", Verbs: moves},
		{Group: "register.open-cluster-management.io", Resource: "managedclusters/accept", Verbs: []string{"update"}},
		// OCM's webhook asks for it when a ManagedCluster is created: each is in a ManagedClusterSet, if only the default one.
		{Group: ocm, Resource: "managedclustersets/join", Verbs: []string{"create"}},
		{Group: work, Resource: "manifestworks", Verbs: []string{"get", "list", "create", "patch", "delete"}},
		{Group: "coordination.k8s.io", Resource: "leases", Names: []string{"managed-cluster-lease"}, Verbs: []string{"get", "list"}},
		// The target grants its bootstrap account create, get, list and watch, and must have what it grants.
		{Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Verbs: []string{"create", "get", "list", "watch", "delete"}},
		// The target approves the clusters that move, and denies other requests of their bootstrap account.
		{Group: "certificates.k8s.io", Resource: "certificatesigningrequests/approval", Verbs: []string{"update"}},
		{Group: "certificates.k8s.io", Resource: "signers", Names: []string{csr.Signer}, Verbs: []string{"approve"}},
		{Group: "", Resource: "namespaces", Verbs: []string{"get", "list", "create", "patch", "delete"}},
		// Objects that move with a cluster.
		{Group: "", Resource: "secrets", Verbs: moves},
		{Group: "", Resource: "configmaps", Verbs: moves},
		{Group: "agent.open-cluster-management.io", Resource: "klusterletaddonconfigs", Verbs: moves},
		{Group: "observability.open-cluster-management.io", Resource: "observabilityaddons", Verbs: []string{"get", "list", "patch", "delete"}},
		// Add-ons whose agent leaves with the cluster are named.
		{Group: cluster.AddOnKind.Group, Resource: "managedclusteraddons", Verbs: []string{"list"}},
		// Bootstrap kubeconfigs.
		{Group: importer, Resource: "klusterletconfigs", Verbs: moves},
		{Group: operators, Resource: "clustermanagers", Names: []string{target.ClusterManager}, Verbs: []string{"get", "patch"}},
		{Group: rbac, Resource: "clusterroles", Verbs: shares},
		{Group: rbac, Resource: "clusterrolebindings", Verbs: shares},
		// Bootstrap accounts, beside the agent's own ServiceAccount: in a namespace of others it could act as their ServiceAccounts.
		{Group: "", Resource: "serviceaccounts", Namespace: namespace, Verbs: shares},
		{Group: "", Resource: "serviceaccounts/token", Namespace: namespace, Verbs: []string{"create"}},
		// The agent authorizes readers of its metrics.
		{Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verbs: []string{"create"}},
		{Group: "authentication.k8s.io", Resource: "tokenreviews", Verbs: []string{"create"}},
	}
	for _, kind := range []struct {
		group, resource string
		status          bool
	}{
		{metal3, "baremetalhosts", true}, {metal3, "hostfirmwaresettings", true}, {metal3, "firmwareschemas", false},
		{metal3, "hostfirmwarecomponents", true}, {metal3, "dataimages", true},
		{installs, "imageclusterinstalls", true}, {hive, "clusterdeployments", true},
	} {
		all = append(all, Permission{Group: kind.group, Resource: kind.resource, Verbs: moves})
		if kind.status {
			all = append(all, Permission{Group: kind.group, Resource: kind.resource + "/status", Verbs: []string{"update"}})
		}
	}
	return all
}
