// Package manifest compares and changes managed resources as a user writes them.
package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Condition is an entry of status.conditions.
type Condition struct{ Status, Reason, Message string }

// ConditionOf returns the condition of a type, or the zero value.
func ConditionOf(o *unstructured.Unstructured, kind string) Condition {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok || fields["type"] != kind {
			continue
		}
		text := func(key string) string { s, _ := fields[key].(string); return s }
		return Condition{Status: text("status"), Reason: text("reason"), Message: text("message")}
	}
	return Condition{}
}

// Named returns a copy of an object with the external name.
func Named(o *unstructured.Unstructured, name string) *unstructured.Unstructured {
	o = o.DeepCopy()
	meta.SetExternalName(o, name)
	return o
}

// WithPolicies returns a copy of an object with the management policies.
func WithPolicies(o *unstructured.Unstructured, policies ...string) *unstructured.Unstructured {
	o = o.DeepCopy()
	list := make([]any, len(policies))
	for i, p := range policies {
		list[i] = p
	}
	_ = unstructured.SetNestedSlice(o.Object, list, "spec", "managementPolicies") // A manifest has a spec.
	return o
}

// MergeInto applies a merge patch to a manifest.
func MergeInto(o *unstructured.Unstructured, patch string) error {
	var changes map[string]any
	if err := json.Unmarshal([]byte(patch), &changes); err != nil {
		return fmt.Errorf("read merge patch %s: %w", patch, err)
	}
	merge(o.Object, changes)
	return nil
}

func merge(into, changes map[string]any) {
	for key, value := range changes {
		deeper, isMap := value.(map[string]any)
		existing, exists := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && exists:
			merge(existing, deeper)
		default:
			into[key] = value
		}
	}
}

// HasStatus reports whether status.atProvider has a value.
func HasStatus(o *unstructured.Unstructured) bool {
	atProvider, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "atProvider")
	return hasValue(atProvider)
}

// hasValue reports whether a value is set. The zero value of a Go struct is written with all its required fields.
func hasValue(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			if hasValue(field) {
				return true
			}
		}
		return false
	case []any:
		return slices.ContainsFunc(value, hasValue)
	case string:
		return value != ""
	case bool:
		return value
	case int64:
		return value != 0
	case float64:
		return value != 0
	}
	return value != nil
}

// FirstDifference names a field that two values have differently.
func FirstDifference(path string, before, after any) string {
	was, ok := before.(map[string]any)
	is, alsoOK := after.(map[string]any)
	if !ok || !alsoOK {
		return fmt.Sprintf("%s is %v, and was %v", path, after, before)
	}
	keys := slices.Sorted(maps.Keys(was))
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if _, known := was[key]; !known {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		if !equality.Semantic.DeepEqual(was[key], is[key]) {
			return FirstDifference(path+"."+key, was[key], is[key])
		}
	}
	return path + " differs"
}
