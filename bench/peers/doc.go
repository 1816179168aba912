// Command peers migrates the same objects of the same CRD on the same control plane with Godwit and with each other known
// migrator, in turns. It measures the speed of each, its cost for the API server and etcd, and the state that it leaves after
// a fault.
//
// The ceiling is a loop of empty merge patches over names that are known beforehand, at its best number in flight. Every
// turn begins with all objects at the other version, after one request for each object and a pause, and the order of the turns
// changes from round to round. Every contestant is the same user, whose requests the API server counts. The CPU time of the
// processes is from /proc, minus their CPU time when idle.
//
// The peers run as they were released:
//
//   - capi and capi-shipped: Cluster API's CRD migrator as a process of tools/peers/clusterapi, without a limit of requests and with
//     the limits that its manager has by default.
//   - intree: kube-controller-manager, with the storage version migrator and the garbage collector, and with no other
//     controller. The migrator reads the cache of the garbage collector. It is ready before the time begins.
//   - ksvm: kube-storage-version-migrator as a process of tools/peers/ksvm, with the limits of its manifests. Its trigger
//     looks for changes every ten minutes; here the migration is created by hand, and the time begins then.
//
// Godwit is the whole process of `godwit crd run`, from its start to its end. The change of the storage version is so old that the run
// does not wait. A turn that exceeds a limit ends there; its speed is computed from the objects that it has migrated.
//
// Each round and each fault is kept in a file when it is measured. The same command continues a run that was interrupted or
// ended by -for.
//
// # Reading order
//
// contestant.go defines a contestant, and child.go runs its program. godwit.go, clusterapi.go and ordered.go are contestants;
// ordered.go has the migrators that a StorageVersionMigration starts. meter.go measures a turn, and environment.go reads the versions
// and the machine. bench.go is one run of the command, with its measured and its missing parts. speed.go measures the turns of a round.
// fault.go has the code that the faults share: denied.go, stopped.go and killed.go. table.go prints the tables, and main.go is the
// command. A file uses only files before it.
package main
