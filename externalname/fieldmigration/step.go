package fieldmigration

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Steps are changes that CEL can express too, so they need no webhook: [Steps.Policy] generates a
// MutatingAdmissionPolicy. They are applied in order.
type Steps struct {
	// Path is the path of the object with the fields; empty means [DefaultPath].
	Path string
	// Steps have fields below Path.
	Steps []Step
}

// Step is one change. [Default], [Copy] and [Move] return one. A field is a path, such as disk.sizeGB.
type Step struct {
	from, to []string
	value    any
	remove   bool
}

// Default sets a field that is missing. It panics if the value is not JSON.
func Default(to string, value any) Step {
	plain, err := decode[any](value)
	if err != nil {
		panic(fmt.Sprintf("fieldmigration: default of %s: %v", to, err))
	}
	return Step{to: strings.Split(to, "."), value: plain}
}

// Copy sets a field that is missing to the value of another one.
func Copy(from, to string) Step { return newFieldStep(from, to) }

// Move replaces a field with another one. Migrated objects do not have the old field. If it exists, the client has just
// written it, so its value replaces that of the new field.
func Move(from, to string) Step {
	s := newFieldStep(from, to)
	s.remove = true
	return s
}

// newFieldStep returns a step between two fields. It panics if one field is part of the other.
func newFieldStep(from, to string) Step {
	if strings.HasPrefix(from+".", to+".") || strings.HasPrefix(to+".", from+".") {
		panic(fmt.Sprintf("fieldmigration: %s and %s: one is part of the other", from, to))
	}
	return Step{from: strings.Split(from, "."), to: strings.Split(to, ".")}
}

var _ Applier = Steps{}

// Apply implements [Applier].
func (s Steps) Apply(o *unstructured.Unstructured) (bool, error) { return s.Migration().Apply(o) }

// Migration returns the steps as a Go function: for [Migration.Check], and for API servers without
// MutatingAdmissionPolicy.
func (s Steps) Migration() Migration[map[string]any] {
	steps := slices.Clone(s.Steps)
	return Migration[map[string]any]{Path: s.Path, Fill: func(fields map[string]any) map[string]any {
		for _, step := range steps {
			step.apply(fields)
		}
		return fields
	}}
}

// apply does not change fields of another type: the validation that follows reports them.
func (s Step) apply(fields map[string]any) {
	value := s.value
	if s.from != nil {
		old, found, err := unstructured.NestedFieldCopy(fields, s.from...)
		if err != nil || !found {
			return
		}
		value = old
	}
	_, found, err := unstructured.NestedFieldNoCopy(fields, s.to...)
	if err != nil {
		return
	}
	if !found || s.remove {
		if err := unstructured.SetNestedField(fields, value, s.to...); err != nil {
			return
		}
	}
	if s.remove {
		unstructured.RemoveNestedField(fields, s.from...)
	}
}
