// Package resource rewrites all objects of any resource that the API server keeps in etcd: Secrets after a change of the
// encryption key or provider, HorizontalPodAutoscalers after a release of Kubernetes stores them at another version.
//
// A [Rewriter] works in five steps. Catalog reads discovery, and its Find returns a [Resource]. Observe reads the [Facts] about it;
// [PlanFor], which is pure, decides on them. Preflight sends the write of one object of each namespace as a dry run. Settle waits
// until every API server has the change, as far as leases and metrics show ([WaitError] names the servers that it waits for).
// Rewrite sends every object an empty merge patch. The API server elides the write if etcd has the object as this API server
// would write it: encrypted with its first key, and at its storage version.
//
// No API shows with which key an object is stored, nor with which key an API server writes. The metrics of an API server show the
// hash of the encryption configuration that it has loaded. With [Options].Configuration, Settle reads this hash from each API
// server that has a lease. Only etcd proves the result: package etcdverify reads it.
//
// The package refuses resources that are not in the API server's etcd, events, which expire by themselves, and custom resources
// whose CRD has old versions in status.storedVersions, because package storageversion migrates those. It reads only the metadata
// of an object, unless the byte budget needs the size of what was written, and keeps names only.
//
// # Reading order
//
// discovery.go finds resources by name. fix.go has what a user can do, reason.go has the reasons, and plan.go decides.
// journal.go keeps what an interrupted run has done. rewriter.go is what a caller configures. catalog.go and observe.go are the I/O
// of a plan, server.go asks the API servers, preflight.go tries the write, and rewrite.go is a run. A file uses only files before it.
package resource
