// Package hub tests the migration of managed clusters between hubs on a real API
// server.
package hub
