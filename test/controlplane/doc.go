// Package controlplane runs a real Kubernetes control plane on the local machine: etcd, one or two API servers, and
// the controller manager. Tests, benchmarks and the demo command run against it.
//
// It builds on envtest, which starts the first etcd and API server, and adds what tests of migrations need: a second API
// server with an identity of its own, which may be frozen while a storage version changes; a restart during a run; reads
// of etcd without an API server; and a controller manager that deletes namespaces, issues tokens and signs certificates.
//
// It does not download anything, does not run on a folder that another control plane has used, and ends with the program
// that started it. It is not for production: etcd does not sync to disk, and credentials are in plain files.
//
// Read controlplane.go (start and stop), then apiserver.go, controllermanager.go and credentials.go. The process*.go files
// have what differs between operating systems; binaries.go finds the programs. crd.go and stored.go are for tests: they
// install CRDs, and count the objects in etcd by version.
package controlplane
