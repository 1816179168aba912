package rescue

import (
	"cmp"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// Change is what a conversion does to one path of the objects.
type Change struct {
	// Path is as in spec.tls.issuer; [] stands for the items of a list.
	Path string `json:"path"`
	// Lost means that a value is removed or changed; otherwise a value is added.
	Lost bool `json:"lost"`
	// Objects is the number of objects with this change, and Example one of them, with its namespace.
	Objects int64  `json:"objects"`
	Example string `json:"example"`
}

// changes collects the changes of all objects.
type changes map[Change]*Change

// compare adds the differences between an object as it is stored and as a rewrite would store it. A null counts as no value, since
// the API server drops it.
func (c changes) compare(key string, before, after map[string]any) {
	lost := pathsOf(before, after)
	for _, path := range lost {
		c.add(Change{Path: path, Lost: true}, key)
	}
	for _, path := range pathsOf(after, before) {
		if !slices.Contains(lost, path) {
			c.add(Change{Path: path}, key)
		}
	}
}

func (c changes) add(one Change, key string) {
	if c[one] == nil {
		c[one] = &Change{Path: one.Path, Lost: one.Lost, Example: key}
	}
	c[one].Objects++
}

// pathsOf are the paths outside metadata of the values that the second object lacks or has changed.
func pathsOf(before, after map[string]any) []string {
	var paths []string
	for _, v := range values.Lost(nil, before, after) {
		if !strings.HasPrefix(v.Path, "metadata") {
			paths = append(paths, leaves(v.Path, v.Value)...)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// leaves are the paths of the values in a value. A map by itself is none, and neither is a null.
func leaves(path string, value any) []string {
	fields, ok := value.(map[string]any)
	if !ok && value != nil {
		return []string{path}
	}
	var paths []string
	for name, v := range fields {
		paths = append(paths, leaves(path+"."+name, v)...)
	}
	return paths
}

// list returns the changes in the order of their paths.
func (c changes) list() []Change {
	all := make([]Change, 0, len(c))
	for _, one := range c {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

func anyLost(all []Change) bool {
	return slices.ContainsFunc(all, func(c Change) bool { return c.Lost })
}
