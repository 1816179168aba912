// Package demo shows a migration from the first plan to the proof in etcd, on a local control
// plane and with the released CRDs of the Gateway API.
//
// It runs the godwit program as a user would type it, and checks each claim by other means: in
// etcd, or with a request to the API server. A claim that does not hold ends the demo with an
// error. It reads no kubeconfig, and removes everything at its end.
//
// # Reading order
//
// teller.go and program.go write the output. stage.go is common to all demos, and keep.go is --keep.
// gatewayapi.go reads the CRDs, and freeze.go makes the API server deny writes of one object. demo.go is
// the demo of stored objects: population.go creates the objects, evidence.go checks, and story.go has
// the chapters. kubevirt.go creates the objects of the demo of ControllerRevisions, and revisions.go has
// its chapters. databases.go starts the provider of the demo of external names and reads its managed
// resources, and names.go has its chapters. hubs.go starts the hubs of the demo of managed clusters, sites.go
// creates the clusters and counts their objects, and clusters.go has the chapters. command.go has the flags. A file uses only files before it.
package demo
