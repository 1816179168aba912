package markers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// marker is a comment of one line that begins with +. text does not have the +.
type marker struct {
	text string
	line int
}

const (
	rootMarker     = "kubebuilder:object:root"
	storageMarker  = "kubebuilder:storageversion"
	metadataMarker = "kubebuilder:metadata"
	groupMarker    = "groupName"
)

// newMarker reads a marker from a comment; false if the comment is not a marker. A /* */ never is.
func newMarker(comment string, line int) (marker, bool) {
	text, ok := strings.CutPrefix(comment, "//")
	if !ok {
		return marker{}, false
	}
	text, ok = strings.CutPrefix(strings.TrimSpace(text), "+")
	return marker{text, line}, ok
}

// argument returns the argument of a marker with that name; false if the marker has another
// name. controller-gen drops one part of a name that it does not know, so that root:=true is
// root=true.
func (m marker) argument(name string) (string, bool) {
	given, argument, _ := strings.Cut(m.text, "=")
	if given == name {
		return argument, true
	}
	last := strings.LastIndexByte(given, ':')
	return argument, last >= 0 && given[:last] == name && len(given) < len(m.text)
}

func (m marker) isRoot() bool {
	argument, ok := m.argument(rootMarker)
	return ok && strings.TrimSpace(argument) == "true"
}

func (m marker) isStorage() bool {
	name, _, _ := strings.Cut(m.text, "=")
	return name == storageMarker
}

func (m marker) group() (string, bool) {
	argument, ok := m.argument(groupMarker)
	if !ok {
		return "", false
	}
	c := cursor(argument)
	group, err := c.word()
	return group, ok && err == nil
}

// exclusion returns the reason of an exclude marker with that name, which may be empty; false
// if the marker has another name.
func (m marker) exclusion(name string) (reason string, ok bool) {
	rest, ok := strings.CutPrefix(m.text, name)
	switch {
	case !ok:
		return "", false
	case rest == "" || rest[0] == ' ' || rest[0] == '\t': // words without a = give no reason
		return "", true
	case rest[0] != '=':
		return "", false
	}
	reason = strings.TrimSpace(rest[1:])
	if unquoted, err := strconv.Unquote(reason); err == nil {
		reason = strings.TrimSpace(unquoted)
	}
	return reason, true
}

// label is a label that a marker gives to a CRD.
type label struct{ key, value string }

var (
	errNoEquals = errors.New("a label is written key=value")
	errQuote    = errors.New("a quotation mark is not closed")
	// errBlank means that controller-gen drops the last part of such a word without an error.
	errBlank = errors.New("a blank stands before a separator")
)

// labels returns the labels of a marker that gives metadata to a CRD; false for any
// other marker. controller-gen accepts labels and annotations in one marker, separated
// by a comma, and several of each as {a=b,c=d} or a=b;c=d, each quoted or not.
func (m marker) labels() ([]label, bool, error) {
	arguments, ok := strings.CutPrefix(m.text, metadataMarker+":")
	first, _, given := strings.Cut(arguments, "=")
	if !ok || !given || strings.Contains(first, ":") {
		return nil, false, nil
	}
	all, err := parseLabels(cursor(arguments))
	return all, true, err
}

func parseLabels(c cursor) ([]label, error) {
	var all []label
	for {
		field, words, err := c.field()
		if err != nil {
			return nil, err
		}
		var pairs []label
		for _, word := range words {
			key, value, ok := strings.Cut(word, "=")
			if !ok {
				return nil, fmt.Errorf("%w, not %q", errNoEquals, word)
			}
			pairs = append(pairs, label{key, value})
		}
		if field == "labels" {
			all = pairs // a second labels= replaces the first
		}
		switch {
		case c.rest() == "":
			return all, nil
		case !c.take(','):
			return nil, fmt.Errorf("%q is more than a marker can say", c.rest())
		}
	}
}

// cursor is the unread rest of a marker's arguments.
type cursor string

const blanks = " \t\r\n"

func (c *cursor) rest() string {
	*c = cursor(strings.TrimLeft(string(*c), blanks))
	return string(*c)
}

func (c *cursor) take(b byte) bool {
	rest := c.rest()
	if rest == "" || rest[0] != b {
		return false
	}
	*c = cursor(rest[1:])
	return true
}

// field reads labels=WORDS or annotations=WORDS.
func (c *cursor) field() (name string, words []string, err error) {
	before, after, ok := strings.Cut(c.rest(), "=")
	name = strings.TrimRight(before, blanks)
	if !ok || name != "labels" && name != "annotations" {
		return name, nil, fmt.Errorf("there are labels= and annotations=, but no %q", name)
	}
	*c = cursor(after)
	separator, braces := byte(';'), c.take('{')
	if braces {
		separator = ','
	}
	for rest := c.rest(); rest != "" && rest[0] != '}' && (braces || rest[0] != ','); rest = c.rest() {
		word, err := c.word()
		if err != nil {
			return name, words, err
		}
		words = append(words, word)
		if !c.take(separator) {
			break
		}
	}
	if braces && !c.take('}') {
		return name, words, errors.New("a { is not closed")
	}
	return name, words, nil
}

// word reads a string in double quotation marks or backquotes, or all up to the next separator. Quotation
// marks that do not stand first are part of the word, and separate nothing.
func (c *cursor) word() (string, error) {
	rest := c.rest()
	if quoted := quotedPrefix(rest); quoted != "" {
		*c = cursor(rest[len(quoted):])
		return strconv.Unquote(quoted)
	}
	end := 0
	for end < len(rest) && !strings.ContainsRune(",;}", rune(rest[end])) {
		switch quoted := quotedPrefix(rest[end:]); {
		case quoted != "":
			end += len(quoted)
		case rest[end] == '"' || rest[end] == '`':
			return "", errQuote
		default:
			end++
		}
	}
	*c = cursor(rest[end:])
	word := strings.TrimRight(rest[:end], blanks)
	if len(word) < end && end < len(rest) {
		return "", errBlank
	}
	return word, nil
}

// quotedPrefix returns the quoted string at the start of text; empty if there is none. For
// controller-gen, 'a' is not a string.
func quotedPrefix(text string) string {
	if text == "" || text[0] != '"' && text[0] != '`' {
		return ""
	}
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return ""
	}
	return quoted
}
