// Package message is what manager and agents say to one another: bundles, and the envelope
// that they travel in.
//
// An envelope is a CloudEvent in binary mode: its header is in the headers of the message
// of the transport, and its data in the value. Everything is signed by the sender, and the
// header is part of what is signed and of what is authenticated by the encryption, so that
// no part of a message can be used in another one. Secrets are sealed to the one that
// needs them: resources to the target, the bootstrap kubeconfig to the source. The
// package decides nothing about a migration, and knows no transport.
//
// # Reading order
//
// keys.go, header.go and envelope.go are what every message has, bundle.go what it says, and
// pack.go and reassemble.go how a large one is sent in parts. A file uses only files before it.
package message
