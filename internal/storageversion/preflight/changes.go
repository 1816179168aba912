package preflight

import (
	"maps"
	"reflect"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ownPaths differ after any write, or only as a consequence of another difference.
var ownPaths = []string{"metadata.generation", "metadata.managedFields", "metadata.resourceVersion"}

// changedPaths returns the paths at which two readings of one object differ, sorted. A
// list whose length differs is one path, since it is not known which items correspond.
func changedPaths(before, after map[string]any) []string {
	var paths []string
	compare(nil, before, after, func(at *field.Path) {
		if path := at.String(); !slices.Contains(ownPaths, path) {
			paths = append(paths, path)
		}
	})
	slices.Sort(paths)
	return paths
}

func compare(at *field.Path, before, after any, differ func(*field.Path)) {
	switch before := before.(type) {
	case map[string]any:
		if after, ok := after.(map[string]any); ok {
			compareMaps(at, before, after, differ)
			return
		}
	case []any:
		if after, ok := after.([]any); ok && len(after) == len(before) {
			for i := range before {
				compare(at.Index(i), before[i], after[i], differ)
			}
			return
		}
	}
	if !reflect.DeepEqual(before, after) {
		differ(at)
	}
}

// compareMaps reports a missing key and a key whose value is null as different.
func compareMaps(at *field.Path, before, after map[string]any, differ func(*field.Path)) {
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for key := range keys {
		b, was := before[key]
		a, is := after[key]
		if was && is {
			compare(below(at, key), b, a, differ)
			continue
		}
		differ(below(at, key))
	}
}

// plainKey needs no brackets.
var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func below(at *field.Path, key string) *field.Path {
	switch {
	case at == nil:
		return field.NewPath(key)
	case plainKey.MatchString(key):
		return at.Child(key)
	}
	return at.Key(key)
}
