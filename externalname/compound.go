package externalname

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Segment is one part of a compound key. [Field] returns one.
type Segment[K any] struct {
	name  string
	rules rules
	get   func(*K) string
	set   func(*K, string)
}

// Field returns the segment of a string field of the key. Every field that distinguishes two keys must have a segment.
func Field[K any, S ~string](name string, field func(*K) *S, list ...Rule) Segment[K] {
	return Segment[K]{
		name:  name,
		rules: newRules(list),
		get:   func(key *K) string { return string(*field(key)) },
		set:   func(key *K, text string) { *field(key) = S(text) },
	}
}

// CompoundCodec is the codec of keys with one or more segments.
type CompoundCodec[K any] struct {
	segments []Segment[K]
	maxBytes int
}

// Compound returns the codec of names that join segments with slashes. It panics if the names of the segments are not
// unique, or if all segments are optional: an empty annotation means that the object has no name.
func Compound[K any](segments ...Segment[K]) CompoundCodec[K] {
	names, required := map[string]bool{}, false
	for _, segment := range segments {
		if segment.name == "" || names[segment.name] {
			panic(fmt.Sprintf("externalname: segment %q: each segment needs a name of its own", segment.name))
		}
		names[segment.name] = true
		required = required || !segment.rules.optional
	}
	if !required {
		panic("externalname: a compound key needs a segment that is not optional")
	}
	return CompoundCodec[K]{segments: segments, maxBytes: DefaultMaxBytes}
}

// MaxBytes returns the codec with another limit than [DefaultMaxBytes].
func (c CompoundCodec[K]) MaxBytes(limit int) CompoundCodec[K] {
	c.maxBytes = limit
	return c
}

var _ Codec[string] = CompoundCodec[string]{}

// Format implements [Codec].
func (c CompoundCodec[K]) Format(key K) (string, error) {
	parts := make([]string, len(c.segments))
	for i, segment := range c.segments {
		text := segment.rules.canonical(segment.get(&key))
		if !utf8.ValidString(text) {
			return "", invalid(segment.name, ReasonNotUTF8, segment.rules.expected(), text)
		}
		if reason, expected := segment.rules.refuse(text); reason != nil {
			return "", invalid(segment.name, reason, expected, text)
		}
		parts[i] = escape(text)
	}
	name := strings.Join(parts, separator)
	if len(name) > c.maxBytes {
		return "", c.tooLong(name)
	}
	return name, nil
}

// Parse implements [Codec].
func (c CompoundCodec[K]) Parse(name string) (K, error) {
	key, canonical, err := c.read(name)
	if err == nil && canonical != name {
		err = invalid("", ReasonNotCanonical, excerpt(canonical), name)
	}
	if err != nil {
		var none K
		return none, err
	}
	return key, nil
}

// ParseLenient implements [Codec].
func (c CompoundCodec[K]) ParseLenient(name string) (K, error) {
	key, _, err := c.read(name)
	return key, err
}

// read returns the key of a name, and the canonical name of the key. A name is canonical if Format writes it; the rules
// are not described a second time.
func (c CompoundCodec[K]) read(name string) (key K, canonical string, err error) {
	var none K
	// Users and tools add spaces at either end, and no name needs unescaped ones.
	switch name = strings.TrimSpace(name); {
	case name == "":
		return none, "", invalid("", ReasonEmpty, c.Describe().String(), name)
	case len(name) > c.lenientBytes():
		return none, "", c.tooLong(name)
	case !utf8.ValidString(name):
		return none, "", invalid("", ReasonNotUTF8, c.Describe().String(), name)
	}
	parts := strings.SplitN(name, separator, len(c.segments)+1)
	for i := len(parts); i < len(c.segments) && c.segments[i].rules.optional; i++ {
		parts = append(parts, "")
	}
	if len(parts) != len(c.segments) {
		return none, "", invalid("", ReasonWrongSegmentCount, c.Describe().String(), name)
	}
	for i, segment := range c.segments {
		text, err := segment.parse(parts[i])
		if err != nil {
			return none, "", err
		}
		segment.set(&key, text)
	}
	// The canonical name may be longer than this one.
	if canonical, err = c.Format(key); err != nil {
		return none, "", err
	}
	return key, canonical, nil
}

// parse reads one segment leniently. It refuses an unescaped control character: no codec writes one, and users can't
// see it.
func (s Segment[K]) parse(escaped string) (string, error) {
	escaped = strings.TrimSpace(escaped)
	if strings.ContainsFunc(escaped, unicode.IsControl) {
		return "", invalid(s.name, ReasonControlCharacter, s.rules.expected(), escaped)
	}
	text, reason := unescape(escaped)
	if reason != nil {
		return "", invalid(s.name, reason, s.rules.expected(), escaped)
	}
	text = s.rules.canonical(text)
	if reason, expected := s.rules.refuse(text); reason != nil {
		return "", invalid(s.name, reason, expected, text)
	}
	return text, nil
}

// lenientBytes bounds the work on a hostile name. An escape takes three bytes for one, and a lenient name may escape
// every byte.
func (c CompoundCodec[K]) lenientBytes() int { return 3 * c.maxBytes }

func (c CompoundCodec[K]) tooLong(name string) *InvalidError {
	return invalid("", ReasonTooLong, fmt.Sprintf("at most %d bytes", c.maxBytes), name)
}

// Describe implements [Codec].
func (c CompoundCodec[K]) Describe() Shape {
	shape := Shape{MaxBytes: c.maxBytes}
	for _, s := range c.segments {
		shape.Segments = append(shape.Segments, SegmentShape{
			Name:      s.name,
			Expected:  s.rules.expected(),
			Values:    s.rules.values,
			GUID:      s.rules.guid != nil,
			Hex32:     s.rules.guid != nil && s.rules.guid.hex32,
			Optional:  s.rules.optional,
			Mutable:   s.rules.mutable,
			FoldsCase: s.rules.foldsCase,
		})
	}
	return shape
}
