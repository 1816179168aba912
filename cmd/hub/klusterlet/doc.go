// Package klusterlet configures the klusterlet of a cluster from a hub without the import controller, by a ManifestWork of Godwit's own in
// the namespace of the cluster.
//
// The work agent of the cluster first reports what it has: the Klusterlet, and the kubeconfig by which its agent is registered. Then it
// applies, by server-side apply, the fields of the Klusterlet that the migration sets, and no others. The ClusterRole that it needs for
// Klusterlets is in the same ManifestWork and goes with it; the Klusterlet stays.
//
// What is applied is proven by what the cluster reports: the fields of the Klusterlet, and that its operator has observed them.
//
// facts.go reads the report, spec.go has the stages of the ManifestWork, and work.go writes them. own.go is for a client of the cluster itself,
// which needs no ManifestWork.
package klusterlet
