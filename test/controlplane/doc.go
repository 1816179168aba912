// Package controlplane runs a real Kubernetes control plane on the local machine: etcd, one or two API servers, and
// the controller manager. Tests, benchmarks and the demo command run against it.
//
// It exists next to envtest, which starts the first etcd and API server underneath, for what migrations are tested by:
// a second API server with an identity of its own, which may be frozen while a storage version changes; a restart in
// the middle of a run; a look into etcd that asks no API server; and a controller manager that deletes namespaces,
// issues tokens and signs certificates.
//
// It refuses to download anything, to run on a folder that another control plane has used, and to outlive the program
// that started it. It is not for production: etcd does not sync to disk and credentials lie in plain files.
//
// Read controlplane.go (start and stop), then apiserver.go, controllermanager.go and credentials.go. process.go and its
// neighbours hold what operating systems differ in; binaries.go finds the programs. crd.go and stored.go serve tests:
// they install CRDs, and count in etcd what is stored at which version.
package controlplane
