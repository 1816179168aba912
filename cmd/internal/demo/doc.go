// Package demo plays the story of a migration, from the first plan to the last
// proof, on a control plane of its own and with the Gateway API's real
// definitions.
//
// It plays it by running the godwit program itself, as a person would type it,
// and checks every claim it makes by other means: in etcd, or by asking the API
// server. A claim that does not hold ends the demo with an error.
//
// It never looks at a kubeconfig, and leaves nothing behind.
//
// There are two stories. Read demo.go, where the chapters of the first are, then story.go for what they have to say
// and evidence.go for what they rest on. gatewayapi.go finds the definitions,
// population.go makes the objects, freeze.go keeps one of them from being
// written; teller.go and program.go own the output. command.go has the flags,
// keep.go is --keep. The other one, of stashed objects, is in revisions.go, on what
// stashes.go makes; stage.go is what both are played on.
package demo
