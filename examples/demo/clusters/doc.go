// Package clusters is the story of a migration of managed clusters between two hubs.
package clusters
