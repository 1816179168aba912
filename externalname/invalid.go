package externalname

import (
	"fmt"
	"strings"
)

// Reason is why a name or a key is invalid.
type Reason string

// Reasons of an [InvalidError].
const (
	// ReasonEmpty means that the name is empty.
	ReasonEmpty Reason = "Empty"
	// ReasonTooLong means that the name has more bytes than the codec allows.
	ReasonTooLong Reason = "TooLong"
	// ReasonNotUTF8 means that the text is no valid UTF-8, as annotations must be.
	ReasonNotUTF8 Reason = "NotUTF8"
	// ReasonWrongSegmentCount means that the name has more or fewer segments than the
	// key has fields.
	ReasonWrongSegmentCount Reason = "WrongSegmentCount"
	// ReasonControlCharacter means that the name has a control character that is not
	// escaped.
	ReasonControlCharacter Reason = "ControlCharacter"
	// ReasonMalformedEscape means that a percent sign is not followed by two
	// hexadecimal digits.
	ReasonMalformedEscape Reason = "MalformedEscape"
	// ReasonBlank means that a segment is empty or has spaces only.
	ReasonBlank Reason = "Blank"
	// ReasonPathElement means that a segment is "." or "..", which a client that puts it
	// into a URL would resolve.
	ReasonPathElement Reason = "PathElement"
	// ReasonNotGUID means that a segment is no GUID of the expected form.
	ReasonNotGUID Reason = "NotGUID"
	// ReasonNotInEnum means that a segment is none of the allowed values.
	ReasonNotInEnum Reason = "NotInEnum"
	// ReasonRejected means that a check of the provider rejects a segment.
	ReasonRejected Reason = "Rejected"
	// ReasonNotCanonical means that the name identifies a resource, but is not written
	// as the codec writes it.
	ReasonNotCanonical Reason = "NotCanonical"
)

// InvalidError means that a text is no external name of a kind, or that a key can't become
// one.
type InvalidError struct {
	// Segment is the name of the segment, empty if the name as a whole is invalid.
	Segment string
	// Reason is one of the documented constants.
	Reason Reason
	// Expected says what a valid text looks like.
	Expected string
	// Got is the beginning of the text, quoted.
	Got string
}

func (e *InvalidError) Error() string {
	var b strings.Builder
	b.WriteString("external name")
	if e.Segment != "" {
		fmt.Fprintf(&b, ", segment %q", e.Segment)
	}
	fmt.Fprintf(&b, ": %s", e.Reason)
	if e.Got != "" {
		fmt.Fprintf(&b, ": got %s", e.Got)
	}
	if e.Expected != "" {
		fmt.Fprintf(&b, ", expected %s", e.Expected)
	}
	return b.String()
}

// gotBytes bounds what an error quotes: an annotation may have 256 KiB, and an error ends in
// a condition and an event.
const gotBytes = 64

func invalid(segment string, reason Reason, expected, got string) *InvalidError {
	return &InvalidError{Segment: segment, Reason: reason, Expected: expected, Got: excerpt(got)}
}

// excerpt quotes the beginning of a text. It may cut a character in two, since %q escapes
// what is left of it.
func excerpt(text string) string {
	if len(text) <= gotBytes {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q… (%d bytes)", text[:gotBytes], len(text))
}
