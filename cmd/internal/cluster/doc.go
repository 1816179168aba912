// Package cluster has the commands that migrate managed clusters between hubs: `godwit cluster`.
//
// They use the global hub, which has the migrations. With access to the hubs, a preflight also checks
// the clusters; what it can't read is NotChecked. `godwit cluster move` needs no global hub, and carries a migration out by itself.
// For a cluster whose hub is lost, package clusterrejoin does it by the context of the cluster.
//
// # Reading order
//
// connection.go connects to the global hub and to the hubs. migration.go finds migrations by name. selection.go has the
// flags that select clusters and hubs, open.go connects as they say, and checks.go runs the preflight. follow.go shows the progress of a
// migration, and carryout.go carries one out. create.go checks, asks and creates one. request.go asks the manager to change one, and lost.go ends one whose target hub is lost. The
// commands are in plan.go, run.go, move.go, status.go, rollback.go, retry.go, forget.go and
// enroll.go, and cluster.go is their parent. A file uses only files before it.
package cluster
