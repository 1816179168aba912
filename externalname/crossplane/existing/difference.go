package existing

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// differences compares each field of spec.forProvider with the one of the same name in status.atProvider. Fields that
// only one of them has are ignored: an external system does not return everything, and has defaults of its own.
func differences(mg resource.Managed) ([]crossplane.Difference, error) {
	text, err := json.Marshal(mg)
	if err != nil {
		return nil, fmt.Errorf("compare with the spec: %w", err)
	}
	var object struct {
		Spec struct {
			ForProvider map[string]any `json:"forProvider"`
		} `json:"spec"`
		Status struct {
			AtProvider map[string]any `json:"atProvider"`
		} `json:"status"`
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("compare with the spec: %w", err)
	}
	return compareMaps("", object.Spec.ForProvider, object.Status.AtProvider), nil
}

func compareMaps(path string, desired, observed map[string]any) []crossplane.Difference {
	var list []crossplane.Difference
	for _, key := range slices.Sorted(maps.Keys(desired)) {
		if is, ok := observed[key]; ok {
			list = append(list, compare(path+key, desired[key], is)...)
		}
	}
	return list
}

func compare(path string, desired, observed any) []crossplane.Difference {
	want, ok := desired.(map[string]any)
	is, alsoOK := observed.(map[string]any)
	if ok && alsoOK {
		return compareMaps(path+".", want, is)
	}
	before, after := textOf(desired), textOf(observed)
	if before == after {
		return nil
	}
	return []crossplane.Difference{{Field: path, Desired: before, Observed: after}}
}

// textOf returns a value as JSON. The elements of a list are sorted, since Terraform returns sets in any order.
func textOf(value any) string {
	list, ok := value.([]any)
	if !ok {
		return encode(value)
	}
	elements := make([]string, len(list))
	for i, element := range list {
		elements[i] = encode(element)
	}
	slices.Sort(elements)
	return fmt.Sprint(elements)
}

// encode returns a text without quotes, and any other value as JSON.
func encode(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
