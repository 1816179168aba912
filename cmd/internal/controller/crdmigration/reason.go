package crdmigration

import "github.com/godwit-dev/godwit"

// Reasons are those of conditions that only the manager decides.
var Reasons godwit.Catalog

// Reasons that only the manager decides.
var (
	ReasonMigrating = Reasons.Declare(godwit.Reason{
		Name:    "Migrating",
		Meaning: "Objects are being written.",
		Fix:     godwit.Do("wait"),
	})
	ReasonSuspended = Reasons.Declare(godwit.Reason{
		Name:    "Suspended",
		Meaning: "spec.suspend is true. None of the conditions is True; kstatus says InProgress, and a client that waits for it waits until spec.suspend is false.",
		Fix:     godwit.Do("set `spec.suspend` to false to resume"),
	})
	ReasonNotBlocked = Reasons.Declare(godwit.Reason{
		Name:    "NotBlocked",
		Meaning: "Nothing keeps the migration from starting. It is a reason of the condition Blocked alone.",
		Fix:     godwit.Do("nothing"),
	})
)
