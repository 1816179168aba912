package values

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Value is a value that a round trip drops or changes.
type Value struct {
	// Path is that of [Loss].
	Path string `json:"path"`
	// Pointer is where the value is in the object, as in RFC 6901.
	Pointer string `json:"pointer"`
	Value   any    `json:"value"`
}

// Lost returns the values of an object that a round trip drops or changes, in the order of their pointers. The schema, which may
// be nil, tells maps from objects, so that the paths of all objects are as few as those of the schema. A value that is new is not
// lost.
func Lost(s *schema, before, after map[string]any) []Value {
	var found []Value
	differ(place{schema: s}, before, after, &found)
	slices.SortFunc(found, func(a, b Value) int { return cmp.Compare(a.Pointer, b.Pointer) })
	return found
}

// Paths returns the paths of values, in order and without duplicates.
func Paths(lost []Value) []string {
	paths := make([]string, len(lost))
	for i, v := range lost {
		paths[i] = v.Path
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// ownFields are the fields that the API server writes by itself, or that name the version of a request.
var ownFields = []string{"apiVersion", "metadata.generation", "metadata.managedFields", "metadata.resourceVersion"}

// place is where a value is.
type place struct {
	path, pointer string
	schema        *schema
}

func differ(at place, before, after any, found *[]Value) {
	switch before := before.(type) {
	case map[string]any:
		if now, ok := after.(map[string]any); ok {
			for key, value := range before {
				inner := at.key(key)
				if slices.Contains(ownFields, inner.path) {
					continue
				}
				if kept, ok := now[key]; ok {
					differ(inner, value, kept, found)
				} else {
					*found = append(*found, Value{inner.path, inner.pointer, value})
				}
			}
			return
		}
	case []any:
		if now, ok := after.([]any); ok && len(now) == len(before) {
			for i := range before {
				differ(at.item(i), before[i], now[i], found)
			}
			return
		}
	}
	if !equal(before, after) {
		*found = append(*found, Value{at.path, at.pointer, before})
	}
}

// escapes are those of RFC 6901.
var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// key is the place of a key of a map.
func (p place) key(key string) place {
	path, inner := below(p.path, p.schema, key)
	return place{path, p.pointer + "/" + escapes.Replace(key), inner}
}

func (p place) item(i int) place {
	return place{p.path + "[]", p.pointer + "/" + strconv.Itoa(i), itemsOf(p.schema)}
}

// below is the path and the schema of a key of a map.
func below(path string, s *schema, key string) (string, *schema) {
	if s != nil {
		if p, ok := s.Properties[key]; ok {
			return join(path, key), &p
		}
		if more := s.AdditionalProperties; more != nil && (more.Allows || more.Schema != nil) {
			return join(path, ""), more.Schema
		}
	}
	if path == "metadata.annotations" || path == "metadata.labels" {
		return path + "[" + key + "]", nil
	}
	return join(path, key), nil
}

func itemsOf(s *schema) *schema {
	if s == nil || s.Items == nil {
		return nil
	}
	return s.Items.Schema
}

// equal compares scalars, and values of different forms. JSON has one type of numbers: 1 and 1.0 are equal.
func equal(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, isNumber := number(a)
	y, isToo := number(b)
	return isNumber && isToo && reflect.TypeOf(a) != reflect.TypeOf(b) && x == y
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// NamedPaths bounds the paths that a message names, since two schemas may differ at hundreds.
const NamedPaths = 5

// JoinPaths names paths in a message.
func JoinPaths(paths []string) string {
	if len(paths) <= NamedPaths {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:NamedPaths], ", "), len(paths)-NamedPaths)
}
