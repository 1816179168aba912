package remedy

import "github.com/godwit-dev/godwit/crdmigrator/markers"

// Markers are the reasons of `godwit lint markers`.
var Markers = []ReasonDoc{
	{Reason: string(markers.Missing), UserAction: true,
		Meaning: "A root type has neither the marker that has its objects migrated nor the one that excludes it.",
		Remedy:  "Add one of the two markers, as the message shows."},
	{Reason: string(markers.Lost), UserAction: true,
		Meaning: "A marker stands where controller-gen does not read it.",
		Remedy:  "Move the marker to the comment of the type that the message names."},
	{Reason: string(markers.WrongValue), UserAction: true,
		Meaning: "The label has another value than the one by which objects are migrated.",
		Remedy:  "Write the value that the message names."},
	{Reason: string(markers.Contradiction), UserAction: true,
		Meaning: "A type has the marker that has its objects migrated and the one that excludes it.",
		Remedy:  "Remove one of the two markers."},
	{Reason: string(markers.NoReason), UserAction: true,
		Meaning: "The marker that excludes a type gives no reason.",
		Remedy:  "Write the reason behind the equals sign of the marker."},
	{Reason: string(markers.Duplicate), UserAction: true,
		Meaning: "A type has the same marker more than once.",
		Remedy:  "Remove all but one."},
	{Reason: string(markers.NotRoot), UserAction: true,
		Meaning: "A type that is not a root type has a marker, which has no effect there.",
		Remedy:  "Move the marker to the root type, or remove it."},
	{Reason: string(markers.Unreadable), UserAction: true,
		Meaning: "A marker can't be read.",
		Remedy:  "Correct the marker, as the message says."},
}
