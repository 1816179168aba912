// Package clusters is the story of managed clusters that move between two hubs.
package clusters
