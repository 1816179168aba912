package revisionreport

import (
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/revision"
)

// State is how far the upgrade of one revision is. `revision plan`, `run`,
// `rollback` and `status` use the same word for the same state.
type State string

const (
	// StateUpgrade means that nothing is written yet.
	StateUpgrade State = "Upgrade"
	// StateRelabel means that the data is at the target, and labels are to be written.
	StateRelabel State = "Relabel"
	// StateInUse means that there is a new revision, and a reference to the old one.
	StateInUse State = "InUse"
	// StateRetained means that no reference to the old revision is left.
	StateRetained State = "Retained"
	// StateDeferred means that a referrer has to stop or to finish something first.
	StateDeferred State = "Deferred"
	// StateBlocked means that a user has to decide or to repair something first.
	StateBlocked State = "Blocked"
	// StateFailed means that an upgrade that was begun needs a user.
	StateFailed State = "Failed"
	// StateSucceeded means that the old revision is gone, or has its labels.
	StateSucceeded State = "Succeeded"
	// StateRolledBack means that all references lead to the old revision again.
	StateRolledBack State = "RolledBack"
	// StateSkipped means that there was nothing to upgrade.
	StateSkipped State = "Skipped"
	// StateUpToDate means that data and labels are at the target.
	StateUpToDate State = "UpToDate"
	// StateUnreferenced means that no reference to the revision was found.
	StateUnreferenced State = "Unreferenced"
)

var revisionStates = map[State]report.Cell{
	StateUpgrade:      {Text: "● Upgrade", Tone: report.Attention},
	StateRelabel:      {Text: "● Relabel", Tone: report.Attention},
	StateInUse:        {Text: "◐ InUse", Tone: report.Attention},
	StateRetained:     {Text: "✓ Retained", Tone: report.Good},
	StateDeferred:     {Text: "◐ Deferred", Tone: report.Attention},
	StateBlocked:      {Text: "✗ Blocked", Tone: report.Bad},
	StateFailed:       {Text: "✗ Failed", Tone: report.Bad},
	StateSucceeded:    {Text: "✓ Succeeded", Tone: report.Good},
	StateRolledBack:   {Text: "✓ RolledBack", Tone: report.Good},
	StateSkipped:      {Text: "· Skipped", Tone: report.Faint},
	StateUpToDate:     {Text: "✓ UpToDate", Tone: report.Good},
	StateUnreferenced: {Text: "· Unreferenced", Tone: report.Faint},
}

// problem tells the states that a user has to know of revision by revision.
func (s State) problem() bool {
	switch s {
	case StateRetained, StateSucceeded, StateRolledBack, StateSkipped, StateUpToDate, StateUnreferenced:
		return false
	}
	return true
}

// UnderWay tells revisions that are neither at the target nor left alone.
func (p Plan) UnderWay() bool {
	return p.State.problem() || p.State == StateRetained || p.State == StateRolledBack
}

// Waits tells a rollback that waits for a referrer.
func Waits(r revision.Result) bool {
	return r.Phase == revision.Pending && (r.Reason == revision.ReasonRunning || r.Reason == revision.ReasonReferrerNotReady)
}

// stateOf a revision that a plan found, which has no phase, or that a run has tried.
func stateOf(r revision.Result) State {
	switch r.Phase {
	case revision.Succeeded, revision.RolledBack, revision.Skipped, revision.InUse, revision.Retained:
		return State(r.Phase)
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
		return StateInUse
	}
	return State(r.Action)
}
