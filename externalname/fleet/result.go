package fleet

import "github.com/godwit-dev/godwit"

// Phase is the result of one managed resource.
type Phase string

const (
	// PhaseRenamed means that the managed resource has the new name, and that its external resource is proven to be the
	// same.
	PhaseRenamed Phase = "Renamed"
	// PhaseUndone means that the proof failed, and that the old name is restored.
	PhaseUndone Phase = "Undone"
	// PhaseRolledBack means that a rollback restored the old name.
	PhaseRolledBack Phase = "RolledBack"
	// PhaseRestored means that the saved name is written.
	PhaseRestored Phase = "Restored"
	// PhaseHandedOver means that the replacement of the managed resource has its external resource: see package handover.
	PhaseHandedOver Phase = "HandedOver"
	// PhaseUnchanged means that the managed resource has the name already.
	PhaseUnchanged Phase = "Unchanged"
	// PhaseDeferred means that nothing is changed, and that a later run may succeed.
	PhaseDeferred Phase = "Deferred"
	// PhaseSkipped means that the managed resource is not renamed: another client or the user must act.
	PhaseSkipped Phase = "Skipped"
	// PhaseGone means that the managed resource does not exist.
	PhaseGone Phase = "Gone"
	// PhaseFailed means that the API server refused, or did not answer.
	PhaseFailed Phase = "Failed"
	// PhaseInterrupted means that the run was interrupted: the journal has the remaining steps.
	PhaseInterrupted Phase = "Interrupted"
)

// Result is the result of one managed resource.
type Result struct {
	Item
	Phase Phase
	// Unfinished means that the renaming has begun and not ended: the message says what it holds.
	Unfinished bool
}

// Reasons of a [Result] that is not Renamed, RolledBack or Restored.
var (
	ReasonNotPaused = Reasons.Declare(godwit.Reason{
		Name: "NotPaused", UserAction: true,
		Meaning: "The provider did not report the pause in time. It may be away, or behind. Nothing is changed.",
		Fix:     godwit.Do("see whether the provider runs and how long its queue is. Run again, with a longer --pause-timeout if it is busy"),
	})
	ReasonNotReconciled = Reasons.Declare(godwit.Reason{
		Name: "NotReconciled", UserAction: true,
		Meaning: "The provider did not report success under the new name in time. The old name is restored.",
		Fix:     godwit.Do("see the message for the provider's error, and correct the expression or the provider"),
	})
	ReasonIdentityChanged = Reasons.Declare(godwit.Reason{
		Name: "IdentityChanged", UserAction: true,
		Meaning: "The new name identifies another external resource: status.atProvider differs. The old name is restored.",
		Fix:     godwit.Do("correct the expression. If the fields in the message do not identify the external resource, name the ones that do with --identity, or exclude these with --volatile"),
	})
	ReasonCreated = Reasons.Declare(godwit.Reason{
		Name: "Created", UserAction: true,
		Meaning: "The provider found no external resource under the new name, and began to create one. The old name is restored once the outcome is recorded.",
		Fix:     godwit.Do("look at both external resources, which the message names, and delete the one in the external system that nothing needs. Then correct the expression"),
	})
	ReasonNoExternalResource = Reasons.Declare(godwit.Reason{
		Name: "NoExternalResource", UserAction: true,
		Meaning: "The provider found no external resource under the new name, while it could only observe. The old name is restored, and nothing is created.",
		Fix:     godwit.Do("correct the expression"),
	})
	ReasonDeletedUnproven = Reasons.Declare(godwit.Reason{
		Name: "DeletedUnproven", UserAction: true,
		Meaning: "The managed resource was deleted before its new name was proven. While a provider only observes, it deletes no external resource.",
		Fix:     godwit.Do("see in the external system which external resources exist, and delete the one that the message names if nothing needs it"),
	})
	ReasonChanged = Reasons.Declare(godwit.Reason{
		Name: "Changed", UserAction: true,
		Meaning: "Another client has changed the external name or the pause meanwhile. What it wrote stays.",
		Fix:     godwit.Do("see in metadata.managedFields which client it is, and plan again"),
	})
	ReasonRefused = Reasons.Declare(godwit.Reason{
		Name: "Refused", UserAction: true,
		Meaning: "The API server refuses the write, and would refuse it again: a webhook or a policy denies it, or a permission is missing.",
		Fix:     godwit.Do("change what the message names, and run again"),
	})
	ReasonUnanswered = Reasons.Declare(godwit.Reason{
		Name:    "Unanswered",
		Meaning: "The API server did not answer.",
		Fix:     godwit.Do("run again when the API server answers: `kubectl get --raw '/readyz?verbose'`"),
	})
	ReasonConflict = Reasons.Declare(godwit.Reason{
		Name:    "Conflict",
		Meaning: "Other clients changed the managed resource between each read and write.",
		Fix:     godwit.Do("run again. If it lasts, see in metadata.managedFields which clients write it"),
	})
	ReasonStopped = Reasons.Declare(godwit.Reason{
		Name:    "Stopped",
		Meaning: "The run stopped before this managed resource, or during its renaming.",
		Fix:     godwit.Do("fix what stopped the run, and run the same command again"),
	})
)
