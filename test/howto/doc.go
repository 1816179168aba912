// Package howto runs a guide of docs/guides: it writes the files that the guide shows, runs its commands in one shell, and
// compares what they print. Tests use it for guides that need more than a control plane, such as a directory server or
// several hubs. Guides that need no more are compared with the tutorials, by the tests of cmd/internal/guide.
//
// Read howto.go, then shell.go.
package howto
