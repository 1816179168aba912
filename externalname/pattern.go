package externalname

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// patterned is a codec that can describe the names that ParseLenient accepts.
type patterned interface {
	pattern() string
	lenientBytes() int
}

// patternOf returns nil for a codec of the author's own.
func patternOf(codec any) patterned {
	p, _ := codec.(patterned)
	return p
}

// errOwnCodec means that the names of a codec have no pattern.
var errOwnCodec = errors.New("only the codecs of package externalname have a pattern")

// expected describes a name in one line.
func expected(shape Shape) string {
	parts := make([]string, len(shape.Segments))
	for i, segment := range shape.Segments {
		parts[i] = segment.Name + " is " + segment.Expected
	}
	return shape.String() + ", where " + strings.Join(parts, ", ")
}

// Expressions for what ParseLenient accepts. It trims each segment as strings.TrimSpace does, and unescapes it.
const (
	spaceClass = `\s\v\x{85}\p{Z}`
	spaces     = "[" + spaceClass + "]*"
	escaped    = "%[0-9a-fA-F]{2}"
	// anyText is not blank and has no control character that is not escaped.
	anyText = `(?:[^/%\p{Cc}` + spaceClass + `]|` + escaped + `)(?:[^/%\p{Cc}]|` + escaped + `)*`
	hexText = "(?:[0-9a-fA-F]|%3[0-9]|%[46][1-6])"
	hyphen  = "(?:-|%2[dD])"
)

// pattern joins the segments. Those that are optional may be empty, and at the end they may be missing.
func (c CompoundCodec[K]) pattern() string {
	required := len(c.segments)
	for required > 0 && c.segments[required-1].rules.optional {
		required--
	}
	var b strings.Builder
	for i, segment := range c.segments {
		text := spaces + segment.rules.pattern() + spaces
		if segment.rules.optional {
			text = "(?:" + text + "|" + spaces + ")"
		}
		switch {
		case i == 0:
		case i >= required:
			b.WriteString("(?:" + separator)
		default:
			b.WriteString(separator)
		}
		b.WriteString(text)
	}
	b.WriteString(strings.Repeat(")?", len(c.segments)-max(required, 1)))
	return b.String()
}

// pattern matches each text of a segment, in the escapes that unescape accepts.
func (r rules) pattern() string {
	switch {
	case r.guid != nil && r.guid.hex32:
		return hexText + "{32}"
	case r.guid != nil:
		return hexText + "{8}" + hyphen + hexText + "{4}" + hyphen + hexText + "{4}" + hyphen + hexText + "{4}" + hyphen + hexText + "{12}"
	case r.values != nil:
		values := make([]string, len(r.values))
		for i, value := range r.values {
			values[i] = r.valuePattern(value)
		}
		return "(?:" + strings.Join(values, "|") + ")"
	}
	return anyText
}

// valuePattern matches the spellings of a value: each character as it is or escaped, and in each letter case if the
// segment ignores it.
func (r rules) valuePattern(value string) string {
	var b strings.Builder
	for _, character := range value {
		var spellings []string
		for _, same := range r.spellings(character) {
			var bytes strings.Builder
			for _, c := range []byte(string(same)) {
				fmt.Fprintf(&bytes, "%%(?i:%02x)", c)
			}
			if !mustEscape(same) {
				spellings = append(spellings, regexp.QuoteMeta(string(same)))
			}
			spellings = append(spellings, bytes.String())
		}
		b.WriteString("(?:" + strings.Join(spellings, "|") + ")")
	}
	return b.String()
}

// spellings are the characters whose canonical text is that of the character.
func (r rules) spellings(character rune) []rune {
	list := []rune{character}
	if !r.foldsCase {
		return list
	}
	for same := unicode.SimpleFold(character); same != character; same = unicode.SimpleFold(same) {
		list = append(list, same)
	}
	if character == 'i' {
		list = append(list, '\u0130') // Its lower case is i, and SimpleFold does not say so.
	}
	return list
}
