package providerlint

import (
	"fmt"

	"github.com/godwit-dev/godwit"
)

// Reasons are those of findings.
var Reasons godwit.Catalog

// Reasons of a [Finding].
var (
	KeyNotDeclared = Reasons.Declare(godwit.Reason{
		Name: "KeyNotDeclared", UserAction: true,
		Meaning: "A CRD of managed resources does not say which fields make the key of the external resource, so that nothing is checked.",
		Fix:     godwit.Do("add the annotation that the message shows, with the value None if the external system makes the key"),
	})
	KeyUnreadable = Reasons.Declare(godwit.Reason{
		Name: "KeyUnreadable", UserAction: true,
		Meaning: "The annotation on the CRD is not a list of PATH=Immutable and PATH=Mutable.",
		Fix:     godwit.Do("correct the annotation"),
	})
	KeyFieldMissing = Reasons.Declare(godwit.Reason{
		Name: "KeyFieldMissing", UserAction: true,
		Meaning: "The annotation names a field that a served version does not have.",
		Fix:     godwit.Do("correct the path, or add the field to the version"),
	})
	KeyCanChange = Reasons.Declare(godwit.Reason{
		Name: "KeyCanChange", UserAction: true,
		Meaning: "A field is part of the key of the external resource, and no rule of the CRD refuses another value. A change would identify another resource.",
		Fix:     godwit.Do("write the rule that the message shows. If the external system can change this part of the key, declare the field as Mutable"),
	})
	KeyCanBeRemoved = Reasons.Declare(godwit.Reason{
		Name: "KeyCanBeRemoved", UserAction: true,
		Meaning: "An update can remove the field, or what it is in, and a later one can set another value. A rule on the field is not evaluated then.",
		Fix:     godwit.Do("write the rule on what the field is in, as the message shows, and make that required"),
	})
	SchemaUnreadable = Reasons.Declare(godwit.Reason{
		Name: "SchemaUnreadable", UserAction: true,
		Meaning: "The schema of a served version is missing or invalid, or the CRD is part of a template, so that nothing is known about its rules.",
		Fix:     godwit.Do("generate the CRD again, or render the template and check the result"),
	})
	ExceptionWithoutReason = Reasons.Declare(godwit.Reason{
		Name: "ExceptionWithoutReason", UserAction: true,
		Meaning: "A kind does not follow a rule of the contract, and does not say why.",
		Fix:     godwit.Do("set Reason. The reference of the kind prints it"),
	})
	ExceptionUnreadable = Reasons.Declare(godwit.Reason{
		Name: "ExceptionUnreadable", UserAction: true,
		Meaning: "The reason of an exception is not a constant text of its package, so that it may be empty.",
		Fix:     godwit.Do("write the text in place, or as a constant of the package"),
	})
	ExceptionMissing = Reasons.Declare(godwit.Reason{
		Name: "ExceptionMissing", UserAction: true,
		Meaning: "A kind has KeyFromStatus and declares no exception. The provider would refuse it at startup.",
		Fix:     godwit.Do("declare an exception of rule NameFromCreate with a reason"),
	})
)

// Finding is a problem in a CRD or in Go source.
type Finding struct {
	File string
	// Line is 0 for a CRD.
	Line int
	// Subject is the CRD or the Go type.
	Subject string
	// Path is the field, empty for findings that are about no field.
	Path string
	godwit.Finding
}

// String returns the finding in the format of compilers.
func (f Finding) String() string {
	at := f.File
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return fmt.Sprintf("%s: %s: %s (%s)", at, f.Subject, f.Message, f.Reason)
}
