// Command peers migrates the same objects of the same CRD on the same control plane with Godwit and with each other
// migrator there is, in turns, and measures how fast each is, what it costs the API server and etcd, and what it leaves behind
// after a fault.
//
// The ceiling is a loop of empty merge patches over names that are known beforehand, at its best number in flight. Every
// turn begins with all objects at the other version, after one request for each object and a pause, and the order of the turns
// changes from round to round. Every contestant is the same user, whose requests the API server counts. CPU time is that
// of the processes, from /proc, less what they use when idle.
//
// The peers run as they were released:
//
//   - capi and capi-shipped: Cluster API's CRD migrator as a process of tools/peers/clusterapi, without a limit of requests and with
//     the limits that its manager has by default.
//   - intree: kube-controller-manager, with the storage version migrator and the garbage collector, whose cache that
//     migrator reads, and with no other controller. It is ready before the time begins.
//   - ksvm: kube-storage-version-migrator as a process of tools/peers/ksvm, with the limits of its manifests. Its trigger
//     looks for changes every ten minutes; here the migration is created by hand, and the time begins then.
//
// Godwit is `godwit crd run` as a whole, from its start to its end, at a change that is so old that it does not wait. A turn
// that exceeds a limit ends there; its speed is that over the objects which it has migrated.
//
// Each round and each fault is kept in a file when it is measured. The same command continues a run that was interrupted or
// ended by -for.
//
// # Reading order
//
// contestant.go has what a contestant is, and child.go runs its program. godwit.go, clusterapi.go and ordered.go are contestants; the
// last one has those that a StorageVersionMigration orders. meter.go measures a turn, and environment.go reads what the numbers depend
// on. bench.go is one run of the command, with the parts that it has and those that it lacks: speed.go measures the turns of a
// round, and fault.go has what the faults share, which are denied.go, stopped.go and killed.go. table.go is what is printed, and main.go is
// the command. A file uses only files before it.
package main
