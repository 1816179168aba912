package values

import (
	"slices"
	"strings"
)

// EveryPath covers each path.
const EveryPath = "."

// Covers reports whether one of the accepted paths covers a path: it is the path itself, or one above it.
func Covers(accepted []string, path string) bool {
	return slices.ContainsFunc(accepted, func(a string) bool { return a == EveryPath || within(a, path) })
}

// Uncovered returns the paths that no accepted path covers.
func Uncovered(accepted, paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return Covers(accepted, path) })
}

// Touches reports whether an accepted path covers one of the paths, or is below one of them.
func Touches(accepted string, paths []string) bool {
	return accepted == EveryPath || slices.ContainsFunc(paths, func(path string) bool {
		above, unnamed := strings.CutSuffix(path, "{}")
		return within(accepted, path) || within(path, accepted) || unnamed && (above == "" || within(above, accepted))
	})
}

// within reports whether a path is another one or below it.
func within(above, path string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || strings.ContainsRune(".[{", rune(rest[0])))
}

// Has reports whether a schema has a path, or keeps fields that it does not name there.
func Has(s *schema, path string) bool {
	n := root(s)
	for _, key := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
		name, items, _ := strings.Cut(key, "[")
		name, values, _ := strings.Cut(name, "{")
		if n.embedded && slices.Contains(metaFields, name) {
			return true
		}
		if n = n.key(name); n.absent {
			return false
		}
		if values != "" {
			n = n.key("")
		}
		if items != "" {
			n = n.items()
		}
	}
	return true
}
