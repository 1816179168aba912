// Package ocm runs hubs and managed clusters of Open Cluster Management on the local machine: real control planes, the
// registration controller of a hub, and a registration agent for each cluster. The programs are those that tools/ocm
// compiles into bin/ocm. Clusters register by CertificateSigningRequests that the real kube-controller-manager signs,
// renew leases, and change hubs as they do in production. The agent of the add-on managed-serviceaccount is real too.
//
// # Simulated programs
//
// Four programs are not available as Go modules, or need images. This package simulates the part of each that a migration
// needs:
//
//   - the import controller, on each hub: it writes the ManifestWork CLUSTER-klusterlet with the bootstrap kubeconfigs of
//     the klusterlet, again when the KlusterletConfig or a secret that it names has changed; see importer.go, and package klusterlet,
//     which compares it with the original. It acts as before backplane 5.0, unless a test calls Hub.FreezeImports
//   - the work agent and the klusterlet operator, for each cluster: they apply that ManifestWork with the credentials of
//     the registration agent, and restart the agent when its configuration has changed; see klusterlet.go
//   - the kubelet, which restarts an agent that ends. Here it waits half a second; in production up to 5 minutes.
//   - the operator of a hub, which restarts the registration controller with the users that its ClusterManager approves;
//     see operator.go
//
// With the source of managedcluster-import-controller, `make e2e-hub-import` runs the controller itself, and clusters with an API server, a
// klusterlet operator and agents of their own; see original.go and owncluster.go.
//
// A hub may also have no import controller. Clusters with an API server, a klusterlet operator and agents of their own join it as users of Open
// Cluster Management join clusters; see join.go.
//
// Clusters share one API server as their own. An agent needs it for a secret and for the cluster's version and claims.
//
// # Reading order
//
// install.go, kubeconfig.go, loop.go, hub.go, operator.go, importer.go, original.go, starthub.go, accounts.go, agent.go, klusterlet.go,
// spoke.go, owncluster.go, join.go. A file uses only files before it.
package ocm
