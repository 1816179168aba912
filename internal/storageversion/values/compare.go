package values

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Lost returns the paths of the values of an object that a round trip drops or changes, in order and without duplicates.
// The schema, which may be nil, tells maps from objects, so that the paths of all objects are as few as those of the schema.
// A value that is new is not lost.
func Lost(s *schema, before, after map[string]any) []string {
	found := map[string]bool{}
	differ("", s, before, after, found)
	return slices.Sorted(maps.Keys(found))
}

// ownFields are the fields that the API server writes by itself, or that name the version of a request.
var ownFields = []string{"apiVersion", "metadata.generation", "metadata.managedFields", "metadata.resourceVersion"}

func differ(path string, s *schema, before, after any, found map[string]bool) {
	switch before := before.(type) {
	case map[string]any:
		if now, ok := after.(map[string]any); ok {
			for key, value := range before {
				here, inner := below(path, s, key)
				if slices.Contains(ownFields, here) {
					continue
				}
				if kept, ok := now[key]; ok {
					differ(here, inner, value, kept, found)
				} else {
					found[here] = true
				}
			}
			return
		}
	case []any:
		if now, ok := after.([]any); ok && len(now) == len(before) {
			for i := range before {
				differ(path+"[]", itemsOf(s), before[i], now[i], found)
			}
			return
		}
	}
	if !equal(before, after) {
		found[path] = true
	}
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
