package advise

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// narrowed lists the constraints of a field that refuse values which the old constraints accepted.
func narrowed(before, after schema) []string {
	var all []string
	if after.Format != before.Format && after.Format != "" {
		all = append(all, fmt.Sprintf("the format is %q and was %q", after.Format, before.Format))
	}
	if after.Pattern != before.Pattern && after.Pattern != "" {
		all = append(all, fmt.Sprintf("the pattern is %q and was %q", after.Pattern, before.Pattern))
	}
	if before.Nullable && !after.Nullable {
		all = append(all, "null was allowed, and is not any more")
	}
	if gone := withdrawn(before, after); len(gone) > 0 {
		all = append(all, "these values are no longer allowed: "+strings.Join(gone, ", "))
	}
	if len(before.Enum) == 0 && len(after.Enum) > 0 {
		all = append(all, "only some values are allowed, and all were")
	}
	all = append(all, lower("minimum", before.Minimum, after.Minimum)...)
	all = append(all, lower("minimum length", before.MinLength, after.MinLength)...)
	all = append(all, lower("minimum number of items", before.MinItems, after.MinItems)...)
	all = append(all, lower("minimum number of properties", before.MinProperties, after.MinProperties)...)
	all = append(all, upper("maximum", before.Maximum, after.Maximum)...)
	all = append(all, upper("maximum length", before.MaxLength, after.MaxLength)...)
	all = append(all, upper("maximum number of items", before.MaxItems, after.MaxItems)...)
	all = append(all, upper("maximum number of properties", before.MaxProperties, after.MaxProperties)...)
	all = append(all, narrowedNumbers(before, after)...)
	all = append(all, narrowedLists(before, after)...)
	return append(all, narrowedAlternatives(before, after)...)
}

// narrowedNumbers lists the constraints of numbers that are no bounds of their own.
func narrowedNumbers(before, after schema) []string {
	var all []string
	if after.MultipleOf != nil && (before.MultipleOf == nil || math.Mod(*before.MultipleOf, *after.MultipleOf) != 0) {
		all = append(all, fmt.Sprintf("only multiples of %v are allowed", *after.MultipleOf))
	}
	same := func(a, b *float64) bool { return a != nil && b != nil && *a == *b } // another bound is listed already
	if same(before.Minimum, after.Minimum) && after.ExclusiveMinimum && !before.ExclusiveMinimum {
		all = append(all, fmt.Sprintf("the minimum %v was allowed, and is not any more", *after.Minimum))
	}
	if same(before.Maximum, after.Maximum) && after.ExclusiveMaximum && !before.ExclusiveMaximum {
		all = append(all, fmt.Sprintf("the maximum %v was allowed, and is not any more", *after.Maximum))
	}
	return all
}

// narrowedLists lists the constraints by which the items of a list have to differ.
func narrowedLists(before, after schema) []string {
	const atomic, set, byKeys = "atomic", "set", "map"
	typeOf := func(s schema) string {
		if s.XListType == nil {
			return atomic // the default of the API server
		}
		return *s.XListType
	}
	was, now := typeOf(before), typeOf(after)
	switch {
	case now == set && was != set, after.UniqueItems && !before.UniqueItems:
		return []string{"the list may not have an item twice"}
	case now == byKeys && (was != byKeys || slices.ContainsFunc(before.XListMapKeys, func(key string) bool { return !slices.Contains(after.XListMapKeys, key) })):
		return []string{"the list may not have two items with the same " + strings.Join(after.XListMapKeys, ", ")}
	}
	return nil
}

// narrowedAlternatives lists the combinations of schemas that may refuse values. Schemas are not solved: another one counts.
func narrowedAlternatives(before, after schema) []string {
	var all []string
	// within reports whether each of some schemas is among others.
	within := func(some, others []schema) bool {
		return !slices.ContainsFunc(some, func(s schema) bool {
			return !slices.ContainsFunc(others, func(o schema) bool { return reflect.DeepEqual(s, o) })
		})
	}
	if !within(after.AllOf, before.AllOf) {
		all = append(all, "allOf has another schema")
	}
	if len(after.AnyOf) > 0 && (len(before.AnyOf) == 0 || !within(before.AnyOf, after.AnyOf)) {
		all = append(all, "anyOf has other schemas")
	}
	if len(after.OneOf) > 0 && (len(before.OneOf) != len(after.OneOf) || !within(before.OneOf, after.OneOf)) {
		all = append(all, "oneOf has other schemas")
	}
	if after.Not != nil && !reflect.DeepEqual(before.Not, after.Not) {
		all = append(all, "not has another schema")
	}
	return all
}

// withdrawn lists the values that an enumeration no longer has.
func withdrawn(before, after schema) []string {
	if len(after.Enum) == 0 {
		return nil
	}
	var gone []string
	for _, value := range before.Enum {
		same := func(now apiextensionsv1.JSON) bool { return bytes.Equal(now.Raw, value.Raw) }
		if !slices.ContainsFunc(after.Enum, same) {
			gone = append(gone, string(value.Raw))
		}
	}
	slices.Sort(gone)
	return gone
}

type number interface{ ~int64 | ~float64 }

func lower[N number](what string, before, after *N) []string {
	if after == nil || before != nil && *after <= *before {
		return nil
	}
	return []string{bound(what, before, after)}
}

func upper[N number](what string, before, after *N) []string {
	if after == nil || before != nil && *after >= *before {
		return nil
	}
	return []string{bound(what, before, after)}
}

func bound[N number](what string, before, after *N) string {
	if before == nil {
		return fmt.Sprintf("the %s is %v, and there was none", what, *after)
	}
	return fmt.Sprintf("the %s is %v, and was %v", what, *after, *before)
}
