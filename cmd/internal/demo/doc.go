// Package demo shows a migration from the first plan to the proof in etcd, on a local control
// plane and with the released CRDs of the Gateway API.
//
// It runs the godwit program as a user would type it, and checks each claim by other means: in
// etcd, or with a request to the API server. A claim that does not hold ends the demo with an
// error. It reads no kubeconfig, and removes everything at its end.
//
// Read demo.go, which has the chapters, then story.go for the chapters' text and evidence.go
// for their checks. gatewayapi.go reads the CRDs, population.go creates the objects, and
// freeze.go makes the API server deny writes of one object. teller.go and program.go write the
// output. command.go has the flags, and keep.go is --keep. The demo of ControllerRevisions is
// in revisions.go, with the objects that kubevirt.go creates. stage.go is common to both.
package demo
