// Package message has the messages between manager and agents: bundles, and the envelope around them.
//
// An envelope is a CloudEvent in binary mode: its header is in the headers of the transport's message, and its data in
// the value. The sender signs header and data, and the encryption authenticates the header too, so no part of a message
// can be used in another one. Secrets are sealed to their reader: resources to the target, the bootstrap kubeconfig to
// the source. The package decides nothing about a migration, and knows no transport.
//
// # Reading order
//
// keys.go, header.go and envelope.go have what all messages share, bundle.go has their content, and pack.go and
// reassemble.go split a large message and join its parts. A file uses only files before it.
package message
