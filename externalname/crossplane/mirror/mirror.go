// Package mirror checks in the tests of a provider that status.atProvider of a kind has the fields of its spec.
package mirror

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
)

// Missing returns the JSON names of the fields of spec.forProvider that status.atProvider lacks. A user who imports
// a resource copies status.atProvider to spec.forProvider, so every field must exist there. except names fields that
// can't be read, such as passwords.
func Missing(mg resource.Managed, except ...string) ([]string, error) {
	desired, err := jsonFields(mg, "Spec", "ForProvider")
	if err != nil {
		return nil, err
	}
	observed, err := jsonFields(mg, "Status", "AtProvider")
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, field := range desired {
		if !slices.Contains(observed, field) && !slices.Contains(except, field) {
			missing = append(missing, field)
		}
	}
	return missing, nil
}

// jsonFields lists the fields of a struct within the kind's type.
func jsonFields(mg resource.Managed, path ...string) ([]string, error) {
	kind := reflect.TypeOf(mg)
	for _, name := range path {
		for kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		field, ok := kind.FieldByName(name)
		if !ok {
			return nil, fmt.Errorf("%T has no field %s", mg, strings.Join(path, "."))
		}
		kind = field.Type
	}
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	if kind.Kind() != reflect.Struct {
		return nil, fmt.Errorf("field %s of %T is not a struct", strings.Join(path, "."), mg)
	}
	return fieldsOf(kind), nil
}

func fieldsOf(kind reflect.Type) []string {
	var fields []string
	for field := range kind.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && field.Anonymous && field.Type.Kind() == reflect.Struct:
			fields = append(fields, fieldsOf(field.Type)...)
		case name == "":
			fields = append(fields, field.Name)
		default:
			fields = append(fields, name)
		}
	}
	return fields
}
