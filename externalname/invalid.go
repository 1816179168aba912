package externalname

import (
	"fmt"
	"strings"

	"github.com/godwit-dev/godwit"
)

// Reasons has the reasons of invalid names.
var Reasons godwit.Catalog

// Reasons of an [InvalidError].
var (
	ReasonEmpty = Reasons.Declare(godwit.Reason{
		Name: "Empty", UserAction: true,
		Meaning: "The external name is empty.",
		Fix:     godwit.Do("write the name of the external resource, or remove the annotation to have one created"),
	})
	ReasonTooLong = Reasons.Declare(godwit.Reason{
		Name: "TooLong", UserAction: true,
		Meaning: "The external name has more bytes than the kind allows.",
		Fix:     godwit.Do("shorten the name"),
	})
	ReasonNotUTF8 = Reasons.Declare(godwit.Reason{
		Name: "NotUTF8", UserAction: true,
		Meaning: "The text is not valid UTF-8, which annotations have to be.",
		Fix:     godwit.Do("write the name in UTF-8"),
	})
	ReasonWrongSegmentCount = Reasons.Declare(godwit.Reason{
		Name: "WrongSegmentCount", UserAction: true,
		Meaning: "The name has more or fewer segments than the kind expects.",
		Fix:     godwit.Do("write each segment that the message names, joined by slashes. A slash within a segment is %2F"),
	})
	ReasonControlCharacter = Reasons.Declare(godwit.Reason{
		Name: "ControlCharacter", UserAction: true,
		Meaning: "The name has a control character that is not escaped.",
		Fix:     godwit.Do("remove the character, or write it with a percent sign and two hexadecimal digits"),
	})
	ReasonMalformedEscape = Reasons.Declare(godwit.Reason{
		Name: "MalformedEscape", UserAction: true,
		Meaning: "A percent sign is not followed by two hexadecimal digits.",
		Fix:     godwit.Do("write %25 for a percent sign"),
	})
	ReasonBlank = Reasons.Declare(godwit.Reason{
		Name: "Blank", UserAction: true,
		Meaning: "A segment is empty or has spaces only.",
		Fix:     godwit.Do("write the segment that the message names"),
	})
	ReasonPathElement = Reasons.Declare(godwit.Reason{
		Name: "PathElement", UserAction: true,
		Meaning: "A segment is . or .., which a client that puts it into a URL would resolve.",
		Fix:     godwit.Do("correct the segment"),
	})
	ReasonNotGUID = Reasons.Declare(godwit.Reason{
		Name: "NotGUID", UserAction: true,
		Meaning: "A segment is not a GUID of the expected form.",
		Fix:     godwit.Do("write the GUID as the external system returns it, in the form that the message shows"),
	})
	ReasonNotInEnum = Reasons.Declare(godwit.Reason{
		Name: "NotInEnum", UserAction: true,
		Meaning: "A segment is none of the allowed values.",
		Fix:     godwit.Do("write one of the values that the message lists"),
	})
	ReasonRejected = Reasons.Declare(godwit.Reason{
		Name: "Rejected", UserAction: true,
		Meaning: "A check of the provider rejects a segment.",
		Fix:     godwit.Do("correct the segment, as the message says"),
	})
	ReasonNotCanonical = Reasons.Declare(godwit.Reason{
		Name: "NotCanonical", UserAction: true,
		Meaning: "The name identifies a resource, but is not written as the provider writes it.",
		Fix:     godwit.Do("write the name that the message shows"),
	})
)

// InvalidError means that a text is not a valid external name of a kind, or that a key can't become one.
type InvalidError struct {
	// Segment is the name of the segment, empty if the name as a whole is invalid.
	Segment string
	// Reason is one of Reasons.
	Reason *godwit.Reason
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

// gotBytes bounds the quoted text in an error: an annotation may have 256 KiB, and an error is written to a condition
// and an event.
const gotBytes = 64

func invalid(segment string, reason *godwit.Reason, expected, got string) *InvalidError {
	return &InvalidError{Segment: segment, Reason: reason, Expected: expected, Got: excerpt(got)}
}

// excerpt quotes the beginning of a text. It may cut a character in two, because %q escapes the rest.
func excerpt(text string) string {
	if len(text) <= gotBytes {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q… (%d bytes)", text[:gotBytes], len(text))
}
