// Package pruning compares decisions about schemas with what the API server's own pruning does to objects.
package pruning
