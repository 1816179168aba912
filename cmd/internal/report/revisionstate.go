package report

import "github.com/godwit-dev/godwit/revision"

// RevisionState is how far the upgrade of one revision is. `revision plan`, `run`,
// `rollback` and `status` use the same word for the same state.
type RevisionState string

const (
	// StateUpgrade means that nothing is written yet.
	StateUpgrade RevisionState = "Upgrade"
	// StateRelabel means that the data is at the target, and labels are to be written.
	StateRelabel RevisionState = "Relabel"
	// StateHeld means that there is a new revision, and a reference to the old one.
	StateHeld RevisionState = "Held"
	// StateRetained means that no reference to the old revision is left.
	StateRetained RevisionState = "Retained"
	// StateDeferred means that a referrer has to stop or to finish something first.
	StateDeferred RevisionState = "Deferred"
	// StateBlocked means that a user has to decide or to repair something first.
	StateBlocked RevisionState = "Blocked"
	// StateFailed means that an upgrade that was begun needs a user.
	StateFailed RevisionState = "Failed"
	// StateSucceeded means that the old revision is gone, or has its labels.
	StateSucceeded RevisionState = "Succeeded"
	// StateRolledBack means that all references lead to the old revision again.
	StateRolledBack RevisionState = "RolledBack"
	// StateSkipped means that there was nothing to upgrade.
	StateSkipped RevisionState = "Skipped"
	// StateUpToDate means that data and labels are at the target.
	StateUpToDate RevisionState = "UpToDate"
	// StateUnreferenced means that no reference to the revision was found.
	StateUnreferenced RevisionState = "Unreferenced"
)

var revisionStates = map[RevisionState]cell{
	StateUpgrade:      {"● Upgrade", attention},
	StateRelabel:      {"● Relabel", attention},
	StateHeld:         {"◐ Held", attention},
	StateRetained:     {"✓ Retained", good},
	StateDeferred:     {"◐ Deferred", attention},
	StateBlocked:      {"✗ Blocked", bad},
	StateFailed:       {"✗ Failed", bad},
	StateSucceeded:    {"✓ Succeeded", good},
	StateRolledBack:   {"✓ RolledBack", good},
	StateSkipped:      {"· Skipped", faint},
	StateUpToDate:     {"✓ UpToDate", good},
	StateUnreferenced: {"· Unreferenced", faint},
}

// problem tells the states that a user has to know of revision by revision.
func (s RevisionState) problem() bool {
	switch s {
	case StateRetained, StateSucceeded, StateRolledBack, StateSkipped, StateUpToDate, StateUnreferenced:
		return false
	}
	return true
}

// UnderWay tells revisions that are neither at the target nor left alone.
func (p RevisionPlan) UnderWay() bool {
	return p.State.problem() || p.State == StateRetained || p.State == StateRolledBack
}

// Waits tells a rollback that waits for a referrer.
func Waits(r revision.Result) bool {
	return r.Phase == revision.Pending && (r.Reason == revision.ReasonRunning || r.Reason == revision.ReasonReferrerNotReady)
}

// stateOf a revision that a plan found, which has no phase, or that a run has tried.
func stateOf(r revision.Result) RevisionState {
	switch r.Phase {
	case revision.Succeeded, revision.RolledBack, revision.Skipped, revision.Held, revision.Retained:
		return RevisionState(r.Phase)
	case revision.Repointed:
		return StateRetained
	case revision.Failed:
		if r.Action != revision.Blocked {
			return StateFailed
		}
	}
	switch {
	case r.Reason == revision.ReasonRetained:
		return StateRetained
	case r.Reason == revision.ReasonRollbackPending:
		return StateDeferred
	case r.Reason == revision.ReasonRolledBack && r.Phase == "":
		return StateRolledBack
	case Waits(r): // a rollback
		return StateDeferred
	case r.Action == revision.Upgrade && r.Replacement != "", r.Action == revision.Deferred && r.Replacement != "", r.Action == "":
		return StateHeld
	}
	return RevisionState(r.Action)
}
