package providerlint

import "fmt"

// Reason is why something is to be corrected.
type Reason string

// Reasons of a [Finding].
const (
	// KeyNotDeclared means that a CRD of managed resources does not say which fields make the key.
	KeyNotDeclared Reason = "KeyNotDeclared"
	// KeyUnreadable means that the annotation can't be read.
	KeyUnreadable Reason = "KeyUnreadable"
	// KeyFieldMissing means that a served version has no field of that path.
	KeyFieldMissing Reason = "KeyFieldMissing"
	// KeyCanChange means that no rule refuses another value.
	KeyCanChange Reason = "KeyCanChange"
	// KeyCanBeRemoved means that no rule refuses an object without the field, or without what it is in.
	KeyCanBeRemoved Reason = "KeyCanBeRemoved"
	// SchemaUnreadable means that the schema of a version is missing or invalid, or that the CRD is part of a
	// template, so that nothing is known.
	SchemaUnreadable Reason = "SchemaUnreadable"
	// ExceptionWithoutReason means that a declared exception does not say why.
	ExceptionWithoutReason Reason = "ExceptionWithoutReason"
	// ExceptionUnreadable means that the reason is no constant text of the package.
	ExceptionUnreadable Reason = "ExceptionUnreadable"
	// ExceptionMissing means that a kind needs an exception and declares none.
	ExceptionMissing Reason = "ExceptionMissing"
)

// Finding is one thing to correct.
type Finding struct {
	File string
	// Line is 0 for a CRD.
	Line int
	// Subject is the CRD or the Go type.
	Subject string
	// Path is the field, empty for findings that are about no field.
	Path    string
	Reason  Reason
	Message string
}

// String is the finding as compilers write theirs.
func (f Finding) String() string {
	at := f.File
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return fmt.Sprintf("%s: %s: %s (%s)", at, f.Subject, f.Message, f.Reason)
}
