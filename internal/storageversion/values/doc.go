// Package values decides whether objects keep each of their values when they are stored at another schema. [Unkept] compares
// schemas, which needs no object. [Pruned] and [Lost] compare an object before and after, and [Losses] counts over all
// objects. The package is pure.
//
// # Reading order
//
// Read schema.go and prune.go, which have the API server's rules for unknown fields, then compare.go and loss.go. consent.go
// has the paths of values that a user gives up, and version.go the old versions of a CRD. A file uses only files before it.
package values
