// Package hub has the CRDs of a hub, for the tests and the demo of moves between hubs. Its tests
// use real API servers.
package hub
