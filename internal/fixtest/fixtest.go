// Package fixtest checks in tests that a finding says the same as the explanation of its reason.
package fixtest

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit"
)

// placeholder is what stands for a name in the fix of a reason.
var placeholder = regexp.MustCompile(`\b(DURATION|FILE|GROUP|KIND|LABELS|MANIFEST|MIGRATION|NAME|NAMESPACE|ORIGIN|OWNER|PATH|RELEASE|RESOURCE|REVISION|SERVER|SERVICE|TARGET|USER|VALUE|VERB|VERSION)\b`)

// Check returns an error unless each way of a finding's fix is one of its reason's fix, in the same order. A way may leave out
// steps, and a step may leave out actions, that only some findings of the reason need. A way may be there for each of several objects.
func Check(f godwit.Finding) error {
	if f.Reason == nil {
		return fmt.Errorf("a finding without a reason: %s", f.Message)
	}
	rest := f.Reason.Fix
	for _, way := range f.Fix {
		i := slices.IndexFunc(rest, func(known godwit.Way) bool { return within(way, known) })
		if i < 0 {
			return fmt.Errorf("the reason %s does not have the way %q in this place of its fix: %s", f.Reason, godwit.Fix{way}, f.Reason.Fix)
		}
		rest = rest[i:] // the next way may be the same, for another object
	}
	return nil
}

// ofAnother reports whether a step stands for all steps of all ways of another finding.
func ofAnother(step godwit.FixStep) bool {
	return step.Do == "do what the reason in the message asks for"
}

// All checks several findings.
func All(findings []godwit.Finding) error {
	for _, f := range findings {
		if err := Check(f); err != nil {
			return err
		}
	}
	return nil
}

// within reports whether the steps of a way are steps of a known one, in their order.
func within(way, known godwit.Way) bool {
	for _, step := range way {
		if strings.HasPrefix(step.Do, "first do what ") { // of another finding
			continue
		}
		i := slices.IndexFunc(known, func(k godwit.FixStep) bool { return is(step, k) })
		switch another := slices.IndexFunc(known, ofAnother); {
		case i >= 0:
			known = known[i+1:]
		case another < 0:
			return false
		}
	}
	return true
}

func is(step, known godwit.FixStep) bool {
	if !pattern(known.Do).MatchString(step.Do) {
		return false
	}
	rest := known.Actions
	for _, action := range step.Actions {
		i := slices.IndexFunc(rest, func(k godwit.Action) bool { return reflect.TypeOf(k) == reflect.TypeOf(action) })
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

// pattern matches the texts that a text with placeholders stands for.
func pattern(text string) *regexp.Regexp {
	return regexp.MustCompile("^" + placeholder.ReplaceAllString(regexp.QuoteMeta(text), ".+") + "$")
}
