package revisionreport

import (
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// State is the state of the upgrade of one revision. `revision plan`, `run`, `rollback` and
// `status` use the same word for the same state.
type State string

const (
	// StateUpgrade means that a run upgrades the revision, and that nothing is written yet.
	StateUpgrade State = "Upgrade"
	// StateRelabel means that the data is at the target version, and that a run writes labels.
	StateRelabel State = "Relabel"
	// StateInUse means that the new revision exists, and that a reference to the old one is left.
	StateInUse State = "InUse"
	// StateRetained means that no reference to the old revision is left.
	StateRetained State = "Retained"
	// StateDeferred means that a referrer must stop or finish its work first.
	StateDeferred State = "Deferred"
	// StateBlocked means that the user must decide or fix something first.
	StateBlocked State = "Blocked"
	// StateFailed means that an upgrade has begun and needs the user.
	StateFailed State = "Failed"
	// StateSucceeded means that the old revision is deleted, or has its labels.
	StateSucceeded State = "Succeeded"
	// StateRolledBack means that all references name the old revision again.
	StateRolledBack State = "RolledBack"
	// StateSkipped means that there was nothing to upgrade.
	StateSkipped State = "Skipped"
	// StateUpToDate means that data and labels are at the target version.
	StateUpToDate State = "UpToDate"
	// StateUnreferenced means that no reference to the revision was found.
	StateUnreferenced State = "Unreferenced"
)

var revisionStates = map[State]render.Cell{
	StateUpgrade:      {Text: "● Upgrade", Tone: render.Attention},
	StateRelabel:      {Text: "● Relabel", Tone: render.Attention},
	StateInUse:        {Text: "◐ InUse", Tone: render.Attention},
	StateRetained:     {Text: "✓ Retained", Tone: render.Good},
	StateDeferred:     {Text: "◐ Deferred", Tone: render.Attention},
	StateBlocked:      {Text: "✗ Blocked", Tone: render.Bad},
	StateFailed:       {Text: "✗ Failed", Tone: render.Bad},
	StateSucceeded:    {Text: "✓ Succeeded", Tone: render.Good},
	StateRolledBack:   {Text: "✓ RolledBack", Tone: render.Good},
	StateSkipped:      {Text: "· Skipped", Tone: render.Faint},
	StateUpToDate:     {Text: "✓ UpToDate", Tone: render.Good},
	StateUnreferenced: {Text: "· Unreferenced", Tone: render.Faint},
}

// problem reports whether output must list each revision in this state.
func (s State) problem() bool {
	switch s {
	case StateRetained, StateSucceeded, StateRolledBack, StateSkipped, StateUpToDate, StateUnreferenced:
		return false
	}
	return true
}

// UnderWay reports whether an upgrade of the revision is pending or in progress.
func (p Plan) UnderWay() bool {
	return p.State.problem() || p.State == StateRetained || p.State == StateRolledBack
}

// Waits reports whether a rollback waits for a referrer.
func Waits(r revision.Result) bool {
	return r.Phase == revision.Pending && (r.Reason == decision.ReasonRunning || r.Reason == decision.ReasonReferrerNotReady)
}

// stateOf returns the state of a revision of a plan, which has no phase, or of a run.
func stateOf(r revision.Result) State {
	switch r.Phase {
	case revision.Succeeded, revision.RolledBack, revision.Skipped, revision.InUse, revision.Retained:
		return State(r.Phase)
	case revision.Repointed:
		return StateRetained
	case revision.Failed:
		if r.Action != decision.Blocked {
			return StateFailed
		}
	}
	switch {
	case r.Reason == decision.ReasonRetained:
		return StateRetained
	case r.Reason == decision.ReasonRollbackPending:
		return StateDeferred
	case r.Reason == decision.ReasonRolledBack && r.Phase == "":
		return StateRolledBack
	case Waits(r): // a rollback
		return StateDeferred
	case r.Action == decision.Upgrade && r.Replacement != "", r.Action == decision.Deferred && r.Replacement != "", r.Action == "":
		return StateInUse
	}
	return State(r.Action)
}
