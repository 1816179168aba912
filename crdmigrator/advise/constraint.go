package advise

import (
	"bytes"
	"fmt"
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
	return append(all, upper("maximum number of properties", before.MaxProperties, after.MaxProperties)...)
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
