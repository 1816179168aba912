package fieldmigration

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Steps are changes that a CEL expression can make as well, so that they need no webhook: [Steps.Policy]
// generates a MutatingAdmissionPolicy. They are made in order.
type Steps struct {
	// Path is the object that has the fields; empty means [DefaultPath].
	Path string
	// Steps have fields below Path.
	Steps []Step
}

// Step is one change. [Default], [Copy] and [Move] make one. A field is a path, such as disk.sizeGB.
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
func Copy(from, to string) Step { return between(from, to) }

// Move replaces a field by another one. No object that has passed the step has the old field. If it is
// there, the client has just written it, and its value wins over the one of the new field.
func Move(from, to string) Step {
	s := between(from, to)
	s.remove = true
	return s
}

// between panics if one field is part of the other.
func between(from, to string) Step {
	if strings.HasPrefix(from+".", to+".") || strings.HasPrefix(to+".", from+".") {
		panic(fmt.Sprintf("fieldmigration: %s and %s: one is part of the other", from, to))
	}
	return Step{from: strings.Split(from, "."), to: strings.Split(to, ".")}
}

var _ Applier = Steps{}

// Apply implements [Applier].
func (s Steps) Apply(o *unstructured.Unstructured) (bool, error) { return s.Migration().Apply(o) }

// Migration is what the steps do, in Go: for [Migration.Check], and for API servers without
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

// apply leaves fields alone whose type does not fit: validation, which follows, says what is wrong.
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
