package markers

import (
	"fmt"

	"github.com/godwit-dev/godwit"
)

const (
	// DefaultLabel is the label by which Godwit finds the CRDs to migrate.
	DefaultLabel = "godwit.dev/auto-migrate-storage-version=true"
	// DefaultExclude is the marker of types whose objects are not migrated.
	DefaultExclude = "godwit:storage-version-migrator:exclude"
)

// Options name the markers; the zero value means Godwit's.
type Options struct {
	// Label is the label of types whose objects are migrated, as key=value; empty
	// means DefaultLabel.
	Label string
	// Exclude is the marker of the other types, with or without the + in front;
	// empty means DefaultExclude.
	Exclude string
	// AllowNoReason accepts exclude markers that give no reason.
	AllowNoReason bool
}

// Reasons are those of findings.
var Reasons godwit.Catalog

// Reasons of findings.
var (
	Missing = Reasons.Declare(godwit.Reason{
		Name: "Missing", UserAction: true,
		Meaning: "A root type has neither the marker that has its objects migrated nor the one that excludes it.",
		Fix:     godwit.Do("add one of the two markers, as the message shows"),
	})
	Lost = Reasons.Declare(godwit.Reason{
		Name: "Lost", UserAction: true,
		Meaning: "A marker stands where controller-gen does not read it.",
		Fix:     godwit.Do("move the marker to the comment of the type that the message names"),
	})
	WrongValue = Reasons.Declare(godwit.Reason{
		Name: "WrongValue", UserAction: true,
		Meaning: "The label has another value than the one by which objects are migrated.",
		Fix:     godwit.Do("write the value that the message names"),
	})
	Contradiction = Reasons.Declare(godwit.Reason{
		Name: "Contradiction", UserAction: true,
		Meaning: "A type has the marker that has its objects migrated and the one that excludes it.",
		Fix:     godwit.Do("remove one of the two markers"),
	})
	NoReason = Reasons.Declare(godwit.Reason{
		Name: "NoReason", UserAction: true,
		Meaning: "The marker that excludes a type gives no reason.",
		Fix:     godwit.Do("write the reason behind the equals sign of the marker"),
	})
	Duplicate = Reasons.Declare(godwit.Reason{
		Name: "Duplicate", UserAction: true,
		Meaning: "A type has the same marker more than once.",
		Fix:     godwit.Do("remove all but one"),
	})
	NotRoot = Reasons.Declare(godwit.Reason{
		Name: "NotRoot", UserAction: true,
		Meaning: "A type that is not a root type has a marker, which has no effect there.",
		Fix:     godwit.Do("move the marker to the root type, or remove it"),
	})
	Unreadable = Reasons.Declare(godwit.Reason{
		Name: "Unreadable", UserAction: true,
		Meaning: "A marker can't be read.",
		Fix:     godwit.Do("correct the marker, as the message says"),
	})
)

// Finding is one thing to correct.
type Finding struct {
	// File is the path of the file, below the folder of the pattern.
	File string
	// Line is the line of the marker, or of the type if its marker is missing.
	Line int
	// Type is the name of the Go type.
	Type string
	// Finding has what is wrong and what to write.
	godwit.Finding
}

// String is file:line: type: message.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Type, f.Message)
}

// subject is a type, with its file, folder and API group.
type subject struct {
	declaration
	file, folder, group string
}
