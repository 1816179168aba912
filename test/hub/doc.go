// Package hub has what tests and the demo of moves between hubs need: the CRDs of a hub. Its tests are on
// real API servers.
package hub
