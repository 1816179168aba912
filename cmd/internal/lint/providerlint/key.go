package providerlint

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// version is the schema of one version of a CRD, with its rules compiled as in the API server.
type version struct {
	schema *apiextensionsv1.JSONSchemaProps
	rules  *cel.Validator // nil without rules
}

func newVersion(props *apiextensionsv1.JSONSchemaProps) (version, error) {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		return version{}, err
	}
	structural, err := schema.NewStructural(internal)
	if err != nil {
		return version{}, err
	}
	return version{schema: props, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// has reports whether the schema has a field at the path.
func (v version) has(path []string) bool {
	at := v.schema
	for _, name := range path {
		next, ok := at.Properties[name]
		if !ok {
			return false
		}
		at = &next
	}
	return true
}

// refusesChange reports whether a rule refuses every tried change of the field.
func (v version) refusesChange(ctx context.Context, path []string) bool {
	values := v.accepted(ctx, path)
	for i := range values[1:] { // none for an enumeration of one value
		one, other := v.sample(path, values[i]), v.sample(path, values[i+1])
		if !v.refuses(ctx, one, other) || !v.refuses(ctx, other, one) {
			return false
		}
	}
	return true
}

// removable returns the part of the path that a user can remove, or nil. A required field can only be removed with its
// parent.
func (v version) removable(ctx context.Context, path []string) []string {
	at := v.schema
	for i, name := range path {
		if !slices.Contains(at.Required, name) && !v.refusesRemoval(ctx, path, path[:i+1]) {
			return path[:i+1]
		}
		next := at.Properties[name]
		at = &next
	}
	return nil
}

func (v version) refusesRemoval(ctx context.Context, path, removed []string) bool {
	for _, value := range v.accepted(ctx, path) {
		before := v.sample(path, value)
		after := runtime.DeepCopyJSON(before)
		unstructured.RemoveNestedField(after, removed...)
		if !v.refuses(ctx, before, after) {
			return false
		}
	}
	return true
}

// refuses reports whether a rule refuses the update from one object to another, and accepts each object by itself.
func (v version) refuses(ctx context.Context, before, after map[string]any) bool {
	usual := v.errors(ctx, before, before)
	maps.Copy(usual, v.errors(ctx, after, after))
	for text := range v.errors(ctx, before, after) {
		if !usual[text] {
			return true
		}
	}
	return false
}

// errors returns the errors of an update. They omit the value, because it differs between objects.
func (v version) errors(ctx context.Context, before, after map[string]any) map[string]bool {
	found := map[string]bool{}
	if v.rules == nil {
		return found
	}
	list, _ := v.rules.Validate(ctx, field.NewPath("object"), nil, after, before, math.MaxInt64)
	for _, err := range list {
		found[err.Field+": "+err.Detail] = true
	}
	return found
}

// guids are values that rules for the format of a key accept.
var guids = []any{"0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11", "5c2e1f60-3b7a-4c1d-9e8f-0a1b2c3d4e5f"}

// accepted returns the values with the fewest errors: a rule for the format refuses the other values both before and
// after a change. It returns all values if only one is left, because one value can't change.
func (v version) accepted(ctx context.Context, path []string) []any {
	all, fewest := v.values(path), math.MaxInt
	var best []any
	for _, value := range all {
		object := v.sample(path, value)
		switch n := len(v.errors(ctx, object, object)); {
		case n < fewest:
			best, fewest = []any{value}, n
		case n == fewest:
			best = append(best, value)
		}
	}
	if len(best) == 1 {
		return all
	}
	return best
}

// values returns the values to try for the field.
func (v version) values(path []string) []any {
	at := *v.schema
	for _, name := range path {
		at = at.Properties[name]
	}
	if len(at.Enum) > 0 {
		var all []any
		for _, raw := range at.Enum {
			all = append(all, fromJSON(raw.Raw))
		}
		return all
	}
	switch at.Type {
	case "integer":
		return []any{int64(1), int64(2)}
	case "number":
		return []any{1.5, 2.5}
	case "boolean":
		return []any{true, false}
	}
	return append([]any{"aaa", "aab"}, guids...)
}

// sample returns an object with all fields, so that rules that read other fields can be evaluated.
func (v version) sample(path []string, value any) map[string]any {
	object, _ := example(*v.schema).(map[string]any)
	_ = unstructured.SetNestedField(object, value, path...) // the schema has the path, so that what it is in is an object
	return object
}

// example returns a value of a schema.
func example(s apiextensionsv1.JSONSchemaProps) any {
	switch {
	case s.Default != nil:
		return fromJSON(s.Default.Raw)
	case len(s.Enum) > 0:
		return fromJSON(s.Enum[0].Raw)
	}
	switch s.Type {
	case "object":
		object := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			object[name] = example(s.Properties[name])
		}
		return object
	case "array":
		if s.Items != nil && s.Items.Schema != nil {
			return []any{example(*s.Items.Schema)}
		}
		return []any{}
	case "integer":
		return int64(1)
	case "number":
		return 1.5
	case "boolean":
		return true
	}
	switch s.Format {
	case "date-time":
		return "2026-01-02T03:04:05Z"
	case "date":
		return "2026-01-02"
	case "duration":
		return "1s"
	case "byte":
		return "YWFh"
	}
	return "aaa"
}

// declared reads the paths in the annotation, and whether each may change.
func declared(text string) (map[string]bool, error) {
	mutable := map[string]bool{}
	for word := range strings.SplitSeq(text, ",") {
		path, kind, _ := strings.Cut(strings.TrimSpace(word), "=")
		if path == "" || kind != "Mutable" && kind != "Immutable" {
			return nil, fmt.Errorf("%q is neither PATH=Immutable nor PATH=Mutable", word)
		}
		mutable[path] = kind == "Mutable"
	}
	return mutable, nil
}
