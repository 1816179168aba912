// Package lock serializes the work on one object, in one process.
package lock
