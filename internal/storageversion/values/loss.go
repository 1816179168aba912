package values

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/internal/quote"
)

// Loss is a path at which objects have values that a rewrite would drop or change.
type Loss struct {
	// Path is as in spec.tls[].issuer; [] is an item of a list, and {} a value of a map.
	Path string `json:"path"`
	// Objects is the number of objects with such a value.
	Objects int64 `json:"objects"`
	// Examples are the first of these objects, with their namespaces.
	Examples []string `json:"examples,omitempty"`
}

const (
	maxExamples = 3
	// maxPaths bounds the memory for the keys of fields without a schema, which differ from object to object.
	maxPaths = 100
)

// Losses collects the losses of all objects. The zero value is empty.
type Losses struct {
	byPath map[string]*Loss
	// more means that further paths were left out.
	more bool
}

// Add adds the paths that [Lost] has returned for an object.
func (l *Losses) Add(object string, paths []string) {
	for _, path := range paths {
		one := l.byPath[path]
		switch {
		case one == nil && len(l.byPath) == maxPaths:
			l.more = true
			continue
		case one == nil && l.byPath == nil:
			l.byPath = map[string]*Loss{}
		}
		if one == nil {
			one = &Loss{Path: path}
			l.byPath[path] = one
		}
		one.Objects++
		one.Examples = append(one.Examples, object)
		slices.Sort(one.Examples)
		one.Examples = one.Examples[:min(len(one.Examples), maxExamples)]
	}
}

// List returns the losses in the order of their paths. If more is true, the objects have further paths.
func (l *Losses) List() (all []Loss, more bool) {
	for _, one := range l.byPath {
		copied := *one
		copied.Examples = slices.Clone(one.Examples)
		all = append(all, copied)
	}
	slices.SortFunc(all, func(a, b Loss) int { return cmp.Compare(a.Path, b.Path) })
	return all, l.more
}

// Describe names the paths of losses in a message, and objects that have a value there.
func Describe(losses []Loss, more bool) string {
	var all []string
	for _, l := range losses[:min(len(losses), NamedPaths)] {
		all = append(all, fmt.Sprintf("%s (%s, such as %s)", l.Path, quote.Count(l.Objects, "object", "objects"), strings.Join(l.Examples, ", ")))
	}
	text := strings.Join(all, ", ")
	if len(losses) > len(all) || more {
		text += " and others"
	}
	return text
}

// Merge joins the losses of the same objects, as two versions show them. Of a path of both, it keeps the one with more
// objects.
func Merge(a, b []Loss) []Loss {
	all := slices.SortedFunc(slices.Values(slices.Concat(a, b)), func(a, b Loss) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), -cmp.Compare(a.Objects, b.Objects))
	})
	return slices.CompactFunc(all, func(a, b Loss) bool { return a.Path == b.Path })
}
