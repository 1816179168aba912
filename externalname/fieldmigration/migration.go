package fieldmigration

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// DefaultPath is the path of the parameters of managed resources.
const DefaultPath = "spec.forProvider"

// Migration changes the fields of an object from the form of an older release to that of the new release. F has the
// fields: a struct with those that Fill reads or writes, or map[string]any.
type Migration[F any] struct {
	// Path is the path of the object with the fields; empty means [DefaultPath].
	Path string
	// Fill returns the fields in the form of the new release. It returns migrated fields unchanged, and depends only on
	// its argument: no clock, no random values, no request. [Migration.Check] tests both.
	Fill func(F) F
}

// Applier is a [Migration] or [Steps], which admission applies to an object.
type Applier interface {
	// Apply changes the object in memory, and reports whether it has changed. An object without the
	// path has nothing to migrate.
	Apply(*unstructured.Unstructured) (changed bool, err error)
}

// Apply implements [Applier]. It changes only the fields that Fill has changed: fields that F does not
// have stay, and zero values of F are not added.
func (m Migration[F]) Apply(o *unstructured.Unstructured) (bool, error) {
	path := pathOr(m.Path)
	fields, found, err := unstructured.NestedMap(o.Object, path...) // a copy
	if err != nil || !found {
		return false, err
	}
	before, after, err := m.run(fields)
	if err != nil {
		return false, fmt.Errorf("%s: %w", strings.Join(path, "."), err)
	}
	if reflect.DeepEqual(before, after) {
		return false, nil
	}
	merge(fields, before, after)
	return true, unstructured.SetNestedMap(o.Object, fields, path...)
}

func pathOr(path string) []string {
	if path == "" {
		path = DefaultPath
	}
	return strings.Split(path, ".")
}

// run returns the fields that F has, before and after Fill.
func (m Migration[F]) run(fields any) (before, after map[string]any, err error) {
	typed, err := decode[F](fields)
	if err != nil {
		return nil, nil, err
	}
	if before, err = decode[map[string]any](typed); err != nil {
		return nil, nil, err
	}
	after, err = decode[map[string]any](m.Fill(typed)) // typed may be changed by now
	return before, after, err
}

// decode converts a value through JSON, and keeps integers as they are.
func decode[T any](from any) (T, error) {
	var to T
	data, err := utiljson.Marshal(from)
	if err != nil {
		return to, err
	}
	return to, utiljson.Unmarshal(data, &to)
}

// merge applies the differences between before and after to the fields. It replaces a changed list as a whole.
func merge(fields, before, after map[string]any) {
	for name := range before {
		if _, stays := after[name]; !stays {
			delete(fields, name)
		}
	}
	for name, value := range after {
		if reflect.DeepEqual(before[name], value) {
			continue
		}
		child, isObject := fields[name].(map[string]any)
		from, wasObject := before[name].(map[string]any)
		if to, staysObject := value.(map[string]any); isObject && wasObject && staysObject {
			merge(child, from, to)
			continue
		}
		fields[name] = value
	}
}
