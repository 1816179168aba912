// Package state compares docs/reference/state.md with the names of annotations, labels, ConfigMaps, Secrets and Leases in the
// source, and with the frozen files beside this package.
package state
