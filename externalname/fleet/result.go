package fleet

// Phase is the result of one managed resource.
type Phase string

const (
	// PhaseRenamed means that the managed resource has the new name, and that it is proven to be the same.
	PhaseRenamed Phase = "Renamed"
	// PhaseUndone means that there was no proof, and that the old name is restored.
	PhaseUndone Phase = "Undone"
	// PhaseRolledBack means that a rollback restored the old name.
	PhaseRolledBack Phase = "RolledBack"
	// PhaseRestored means that the name of a book is written.
	PhaseRestored Phase = "Restored"
	// PhaseUnchanged means that the managed resource has the name already.
	PhaseUnchanged Phase = "Unchanged"
	// PhaseDeferred means that nothing is changed, and that a later run may succeed.
	PhaseDeferred Phase = "Deferred"
	// PhaseSkipped means that the managed resource is left to another client or to the user.
	PhaseSkipped Phase = "Skipped"
	// PhaseGone means that the managed resource does not exist.
	PhaseGone Phase = "Gone"
	// PhaseFailed means that the API server refused, or did not answer.
	PhaseFailed Phase = "Failed"
	// PhaseInterrupted means that the run was interrupted: the journal has what is left to do.
	PhaseInterrupted Phase = "Interrupted"
)

// Result is what became of one managed resource.
type Result struct {
	Item
	Phase Phase
}

// Reasons of a [Result] that is not Renamed, RolledBack or Restored.
const (
	// ReasonNotPaused means that the provider did not report the pause in time. It may be away.
	ReasonNotPaused = "NotPaused"
	// ReasonNotReconciled means that the provider did not report success under the new name in time. The
	// old name is restored.
	ReasonNotReconciled = "NotReconciled"
	// ReasonIdentityChanged means that the new name identifies another external resource. The old name is
	// restored.
	ReasonIdentityChanged = "IdentityChanged"
	// ReasonCreated means that the provider began to create an external resource under the new name. The
	// old name is restored.
	ReasonCreated = "Created"
	// ReasonChanged means that another client has changed the external name or the pause meanwhile. What
	// that client wrote stays.
	ReasonChanged = "Changed"
	// ReasonRefused means that the API server refuses the write, and would refuse it again.
	ReasonRefused = "Refused"
	// ReasonUnanswered means that the API server did not answer, or has not written the patch.
	ReasonUnanswered = "Unanswered"
	// ReasonConflict means that other clients kept writing the managed resource.
	ReasonConflict = "Conflict"
	// ReasonStopped means that the run stopped before this managed resource.
	ReasonStopped = "Stopped"
)
