package markers

import (
	"fmt"
)

const (
	// DefaultLabel is the label by which Godwit finds what it is to migrate.
	DefaultLabel = "godwit.dev/auto-migrate-storage-version=true"
	// DefaultExclude is the marker of types that are not to be migrated.
	DefaultExclude = "godwit:storage-version-migrator:exclude"
)

// Options name the markers; the zero value means Godwit's.
type Options struct {
	// Label is what migrated types carry, as key=value; DefaultLabel when empty.
	Label string
	// Exclude is the marker of the others, with or without the + in front;
	// DefaultExclude when empty.
	Exclude string
	// AllowNoReason accepts exclude markers that give no reason.
	AllowNoReason bool
}

// Reason says what is wrong with a type.
type Reason string

const (
	// Missing means that the type has neither marker.
	Missing Reason = "Missing"
	// Lost means that a marker stands above the type where controller-gen does not look.
	Lost Reason = "Lost"
	// WrongValue means that the marker gives the label another value.
	WrongValue Reason = "WrongValue"
	// Contradiction means that the type, or the kind in its versions, has both markers.
	Contradiction Reason = "Contradiction"
	// NoReason means that the exclude marker does not say why.
	NoReason Reason = "NoReason"
	// Duplicate means that the same marker is there twice.
	Duplicate Reason = "Duplicate"
	// NotRoot means that a type that gets no CRD has a marker, which does nothing.
	NotRoot Reason = "NotRoot"
	// Unreadable means that controller-gen fails on a marker with labels, or misreads it.
	Unreadable Reason = "Unreadable"
)

// Finding is one thing to correct.
type Finding struct {
	// File is as the pattern led to it.
	File string
	// Line is the marker's, or the type's where a marker is missing.
	Line int
	// Type is the name of the Go type.
	Type   string
	Reason Reason
	// Message says what is wrong and what to write.
	Message string
}

// String is file:line: type: message.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Type, f.Message)
}

// subject is a type and where it was found.
type subject struct {
	declaration
	file, folder, group string
}
