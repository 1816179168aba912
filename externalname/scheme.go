package externalname

import (
	"fmt"
	"strings"
)

// Class is the class of a name of a [Scheme].
type Class string

const (
	// Empty means that the object has no name.
	Empty Class = "Empty"
	// Canonical means that the name is the one that the codec writes.
	Canonical Class = "Canonical"
	// Lenient means that the name identifies the resource, but that the codec would write it differently.
	Lenient Class = "Lenient"
	// Legacy means that the name has a legacy form.
	Legacy Class = "Legacy"
)

// Content is what a legacy form contains.
type Content string

const (
	// ContentKey means that the name contains the whole key.
	ContentKey Content = "Key"
	// ContentHint means that the name does not identify the resource by itself: the
	// provider looks the resource up with the help of the spec.
	ContentHint Content = "Hint"
	// ContentOperation means that the name is the ID of an operation, which knows the
	// key once it has ended.
	ContentOperation Content = "Operation"
)

// Form is a legacy form of a kind's names.
type Form[K any] struct {
	// Name identifies the form in metrics, plans and the reference. It is CamelCase.
	Name string
	// Content is the content of such a name.
	Content Content

	read func(name, objectName string) (Reading[K], error)
	// pattern describes the names of the form; nil if its codec has none.
	pattern patterned
	// objectName means that the only name of the form is that of the managed resource.
	objectName bool
}

// LegacyKey returns the form of names that contain the whole key, in the form of another codec.
func LegacyKey[K any](form string, codec Codec[K]) Form[K] {
	return Form[K]{Name: form, Content: ContentKey, pattern: patternOf(codec), read: func(name, _ string) (Reading[K], error) {
		key, err := codec.ParseLenient(name)
		return Reading[K]{Key: key}, err
	}}
}

// LegacyHint returns the form of names that do not identify the resource by themselves, such as a name without the
// organization.
func LegacyHint[K any](form string, codec Codec[string]) Form[K] {
	return Form[K]{Name: form, Content: ContentHint, pattern: patternOf(codec), read: func(name, _ string) (Reading[K], error) {
		text, err := codec.ParseLenient(name)
		return Reading[K]{Text: text}, err
	}}
}

// LegacyObjectName returns the form that crossplane-runtime writes by default: the name of the managed resource itself.
// It is a hint, unless the external system uses that name.
func LegacyObjectName[K any]() Form[K] {
	return Form[K]{Name: "ObjectName", Content: ContentHint, objectName: true, read: func(name, objectName string) (Reading[K], error) {
		if name != objectName {
			return Reading[K]{}, invalid("", ReasonRejected, "the name of the managed resource", name)
		}
		return Reading[K]{Text: name}, nil
	}}
}

// LegacyOperation returns the form of names that are the ID of the operation that creates the resource.
func LegacyOperation[K any](form string, codec Codec[string]) Form[K] {
	return Form[K]{Name: form, Content: ContentOperation, pattern: patternOf(codec), read: func(name, _ string) (Reading[K], error) {
		text, err := codec.ParseLenient(name)
		return Reading[K]{Text: text}, err
	}}
}

// Scheme has the form of a kind's names, and their legacy forms.
type Scheme[K any] struct {
	// Codec writes the names.
	Codec Codec[K]
	// Legacy are the legacy forms. The first one that accepts a name reads it.
	Legacy []Form[K]
}

// Reading is the content of a name.
type Reading[K any] struct {
	// Class is the class of the name.
	Class Class
	// Form is the name of the legacy form, if Class is Legacy.
	Form string
	// Content is what a legacy form contains.
	Content Content
	// Key identifies the external resource. It is set for Canonical and Lenient names,
	// and for legacy forms that contain a key.
	Key K
	// Name is the canonical name of Key; empty if the name has no key.
	Name string
	// Text is the hint or the ID of the operation.
	Text string
}

// HasKey reports whether the name identifies the external resource.
func (r Reading[K]) HasKey() bool { return r.Name != "" }

// Read reads the external name of the managed resource objectName. If the codec accepts a name, it is not read as a
// legacy form. If no form accepts the name, Read returns the [InvalidError] of the codec.
func (s Scheme[K]) Read(name, objectName string) (Reading[K], error) {
	if name == "" {
		return Reading[K]{Class: Empty}, nil
	}
	if key, err := s.Codec.Parse(name); err == nil {
		return Reading[K]{Class: Canonical, Key: key, Name: name}, nil
	}
	key, invalidErr := s.Codec.ParseLenient(name)
	if invalidErr == nil {
		return s.withName(Reading[K]{Class: Lenient, Key: key})
	}
	for _, form := range s.Legacy {
		reading, err := form.read(name, objectName)
		if err != nil {
			continue
		}
		reading.Class, reading.Form, reading.Content = Legacy, form.Name, form.Content
		if form.Content == ContentKey {
			return s.withName(reading)
		}
		return reading, nil
	}
	return Reading[K]{}, invalidErr
}

// withName adds the canonical name of the key. A key that a former codec accepts may be
// invalid today.
func (s Scheme[K]) withName(reading Reading[K]) (Reading[K], error) {
	name, err := s.Codec.Format(reading.Key)
	if err != nil {
		return Reading[K]{}, err
	}
	reading.Name = name
	return reading, nil
}

// Pattern is a bound on the names of a [Scheme] that a program without the codec can check, such as an API server. Each
// name that [Scheme.Read] accepts is within the bound. A name within it may still be malformed: the checks of a provider
// are Go functions, and are not in it.
type Pattern struct {
	// Regexp is a regular expression (RE2) that matches each name without its outer spaces.
	Regexp string
	// MaxBytes is the longest name without its outer spaces.
	MaxBytes int
	// ObjectName means that the name of the managed resource is a name as well.
	ObjectName bool
	// Expected says what a name looks like.
	Expected string
}

// Pattern returns the bound on the names of the scheme, legacy forms included. It returns an error if a codec is one of
// the author's own.
func (s Scheme[K]) Pattern() (Pattern, error) {
	codec := patternOf(s.Codec)
	if codec == nil {
		return Pattern{}, fmt.Errorf("describe names of %T: %w", s.Codec, errOwnCodec)
	}
	p := Pattern{MaxBytes: codec.lenientBytes(), Expected: expected(s.Codec.Describe())}
	forms := []string{codec.pattern()}
	for _, form := range s.Legacy {
		switch {
		case form.pattern != nil:
			forms = append(forms, form.pattern.pattern())
			p.MaxBytes = max(p.MaxBytes, form.pattern.lenientBytes())
		case form.objectName:
			p.ObjectName = true
		default:
			return Pattern{}, fmt.Errorf("describe names of form %s: %w", form.Name, errOwnCodec)
		}
	}
	p.Regexp = "^(?:" + strings.Join(forms, "|") + ")$"
	return p, nil
}
