// Package controlplane runs a real Kubernetes control plane on the local machine: etcd, one or two API servers, and
// the controller manager. Tests, benchmarks and the demo run against it.
//
// It builds on envtest, which starts the first etcd and API server, and adds what tests of migrations need: a second API
// server with its own identity, which may be frozen while a storage version changes; a restart during a run; reads
// of etcd without an API server; and a controller manager that deletes namespaces, issues tokens and signs certificates.
//
// It does not download anything, does not run on a folder that another control plane has used, and ends with the program
// that started it. It is not for production: etcd does not sync to disk, and credentials are in plain files.
//
// # Reading order
//
// binaries.go finds the programs, port.go a free port, and logs.go reads the end of a log. process_linux.go and process_other.go have
// what differs between operating systems. authority.go signs certificates. controlplane.go has the options and the type;
// pods.go has what differs with pods. credentials.go adds users, and apiserver.go, etcd.go and controllermanager.go start servers.
// start.go starts and stops all, and main.go does so for the tests of a package. crd.go installs CRDs, and stored.go reads in etcd at
// which version objects are. A file uses only files before it.
package controlplane
