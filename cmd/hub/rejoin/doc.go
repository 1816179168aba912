// Package rejoin brings a cluster whose hub is lost to another hub, with a client of the cluster itself and one of that hub.
//
// Each pass reads both API servers, and [Next] decides on these [Facts] alone which step is due. So a process that was killed between any
// two writes is continued by the next one, and nothing is stored beside the objects that the steps change: the label of the ManagedCluster,
// and an annotation of the Klusterlet with what it had before. [Check] refuses what a step could not undo.
//
// The cluster is known by the UID of its namespace kube-system. The target approves the requests of a bootstrap account that this cluster
// alone has, and no others: package target does it, as in a migration. A ManagedCluster that a migration has left there half done keeps the
// mark of that migration until its end, and so do the objects that came with it.
//
// What the works of the lost hub have applied is released before the work agent may delete it: its eviction is off from before the cluster
// registers until nothing is left that must stay. What the klusterlet lives on is always released.
//
// # Reading order
//
// record.go, facts.go, work.go, check.go, step.go, imported.go are pure. answer.go asks the lost hub. observe.go reads, release.go and act.go write, run.go
// repeats. A file uses only files before it.
package rejoin
