// Package values decides whether objects keep each of their values when they are stored at another schema. [Unkept] compares
// schemas, which needs no object. [Pruned] and [Lost] compare an object before and after, and [Losses] counts over all
// objects. The package is pure.
//
// Read schema.go and prune.go, which have the API server's rules for unknown fields, then compare.go and loss.go.
package values
