// Package plan has the command that plans all domains of one cluster or of several: `godwit plan`.
//
// The command only reads. The plan of each domain decides its state, and package planreport adds the states up. A
// domain that can't be read and a cluster that does not answer have their own rows with the cause, and are never Clean.
//
// # Reading order
//
// permission.go lists the permissions. context.go chooses the clusters. scanner.go connects to one, and crd.go, reference.go,
// revision.go, externalname.go, hub.go and resource.go read its domains. cluster.go makes the rows of a cluster, and gather.go
// those of all. output.go writes them, options.go has the flags, watch.go shows one plan after the
// other, and plan.go is the command. A file uses only files before it.
package plan
