package preflight

import (
	"slices"

	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// changedPaths returns the paths at which two readings of one object differ, sorted. A list whose length differs is one path, since
// it is not known which items correspond.
func changedPaths(before, after map[string]any) []string {
	paths := slices.Concat(values.Paths(values.Lost(nil, before, after)), values.Paths(values.Lost(nil, after, before)))
	slices.Sort(paths)
	return slices.Compact(paths)
}
