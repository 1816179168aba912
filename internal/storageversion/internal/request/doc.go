// Package request sends all requests of package storageversion. It decides nothing: it writes an
// object, a CRD or its status, counts what was stored against the byte budget, and reads the
// objects that a decision needs.
//
// Read client.go, then written.go, which finds the size of what was stored.
package request
