package externalname

import (
	"slices"
	"strings"

	"github.com/godwit-dev/godwit"
)

// Rule restricts one segment of a name, or defines how changes of it are handled.
type Rule func(*rules)

// rules are the rules of one segment. The zero value accepts any text that is not blank.
type rules struct {
	guid      *guidForm
	values    []string
	checks    []check
	optional  bool
	mutable   bool
	foldsCase bool
}

type check struct {
	expected string
	accepts  func(string) bool
}

// IsGUID means that the segment is a GUID in the form of [GUID].
func IsGUID(options ...GUIDOption) Rule {
	return func(r *rules) {
		r.guid = &guidForm{}
		for _, option := range options {
			option(r.guid)
		}
		r.foldsCase = true
	}
}

// Enum means that the segment is one of the values.
func Enum(values ...string) Rule {
	return func(r *rules) { r.values = slices.Clone(values) }
}

// Check restricts the segment with a function of the provider. Errors say that expected is required, such as "a
// region". The function gets the text of the key, without escapes; if the segment ignores letter case, in lower case.
func Check(expected string, accepts func(text string) bool) Rule {
	return func(r *rules) { r.checks = append(r.checks, check{expected: expected, accepts: accepts}) }
}

// Optional means that the segment may be empty. A blank text is not empty and is refused.
func Optional() Rule { return func(r *rules) { r.optional = true } }

// FoldCase means that the external system ignores letter case in the segment. Keys that
// differ in letter case only are the same key, and names have lower case.
func FoldCase() Rule { return func(r *rules) { r.foldsCase = true } }

// Mutable means that the segment may change during the life of the external resource. A
// change of another segment is a change of the identity.
func Mutable() Rule { return func(r *rules) { r.mutable = true } }

func newRules(list []Rule) rules {
	var r rules
	for _, rule := range list {
		rule(&r)
	}
	if r.foldsCase {
		for i, value := range r.values {
			r.values[i] = strings.ToLower(value)
		}
	}
	return r
}

// canonical returns the text as it is in a name, before it is escaped.
func (r rules) canonical(text string) string {
	if r.foldsCase {
		return strings.ToLower(text)
	}
	return text
}

// refuse returns why a canonical text breaks the rules, or nil.
func (r rules) refuse(text string) (reason *godwit.Reason, expected string) {
	switch {
	case text == "" && r.optional:
		return nil, ""
	case strings.TrimSpace(text) == "":
		return ReasonBlank, r.expected()
	case text == "." || text == "..":
		return ReasonPathElement, r.expected()
	case r.guid != nil && !r.guid.matches(text):
		return ReasonNotGUID, r.expected()
	case r.values != nil && !slices.Contains(r.values, text):
		return ReasonNotInEnum, r.expected()
	}
	for _, c := range r.checks {
		if !c.accepts(text) {
			return ReasonRejected, c.expected
		}
	}
	return nil, ""
}

// expected says what a valid text looks like.
func (r rules) expected() string {
	switch {
	case r.guid != nil:
		return r.guid.expected()
	case r.values != nil:
		return "one of " + strings.Join(r.values, ", ")
	case len(r.checks) > 0:
		all := make([]string, len(r.checks))
		for i, c := range r.checks {
			all[i] = c.expected
		}
		return strings.Join(all, " and ")
	}
	return "text"
}
