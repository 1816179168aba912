package hub

import (
	"slices"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// enter begins a phase.
func (s *State) enter(stage api.Phase, now time.Time) {
	s.Phase, s.Stage = stage, stage
	s.Since, s.Thirds = now, 0
	s.next(0)
}

// next begins a turn as a new attempt.
func (s *State) next(turn int) {
	s.Turn = turn
	s.Attempt++
}

// following returns the turn after the present one: the next, or again the one that waits for
// clusters, if skipTurn has left it before all had returned.
func (s State) following() int {
	deletes := slices.ContainsFunc(s.turn(), func(t task) bool { return slices.Contains(t.actions, DeleteCreated) })
	if !deletes || !s.any(Returning, Registered) {
		return s.Turn + 1
	}
	return slices.IndexFunc(s.turns(), func(t turn) bool { return slices.Contains(t[0].actions, AwaitReturn) })
}

// finishStage enters the phase that follows the last turn of a stage. It reports whether there is one.
func (s *State) finishStage(now time.Time) bool {
	switch s.Phase {
	case api.PhaseValidating:
		s.enter(api.PhaseInitializing, now)
	case api.PhaseInitializing:
		s.enter(api.PhaseDeploying, now)
	case api.PhaseDeploying:
		s.enter(api.PhaseRegistering, now)
	case api.PhaseRollbacking:
		s.end(api.PhaseFailed, now)
	case api.PhaseCleaning:
		s.end(api.PhaseCompleted, now)
	default:
		return false
	}
	return true
}

// end enters Failed or Completed. Commands that have not finished stay due: with an unreachable
// hub, the rollback continues in phase Failed, and the cleanup in phase Completed.
func (s *State) end(phase api.Phase, now time.Time) {
	s.Phase, s.Since, s.Thirds = phase, now, 0
	s.repeat()
}

// fail records why the migration failed and begins the rollback, if there is something to roll back.
func (s *State) fail(reason, message string, now time.Time) {
	if s.Reason == "" || reason == api.ReasonAborted.Name {
		s.Reason = reason
	}
	s.Message = clip(message)
	stage := s.Stage
	if s.Phase == api.PhasePending || s.Phase == api.PhaseValidating {
		// The migration has changed neither hub.
		s.Phase, s.Stage, s.WaitingFor = api.PhaseFailed, "", ""
		s.Since, s.Thirds = now, 0
		return
	}
	s.RollbackStage = stage
	s.returnAll()
	s.enter(api.PhaseRollbacking, now)
}

// returnAll makes every cluster return to the source hub.
func (s *State) returnAll() {
	for i := range s.Clusters {
		s.Clusters[i].State = Returning
	}
}

// repeat begins another attempt at what has failed, in the stages that an error does not end.
func (s *State) repeat() {
	if s.Stage != api.PhaseRollbacking && s.Stage != api.PhaseCleaning {
		return
	}
	if s.ended() {
		s.skipTurn()
	}
	if slices.ContainsFunc(s.turn(), func(t task) bool { return s.record(t.party).failed() }) {
		s.next(s.Turn)
	}
}

// skipTurn leaves a turn that may never finish, if the later turns do not need it. A target hub
// that does not answer must not prevent the source hub from reverting its klusterlets; a later
// command to the target includes the actions of the skipped turn. A cluster that does not return
// must not keep the other clusters' objects on the target hub; following returns to the turn.
func (s *State) skipTurn() {
	for _, t := range s.turn() {
		last := t.actions[len(t.actions)-1]
		if s.Stage == api.PhaseRollbacking && last == StopAccepting || s.any(Returned) && slices.Contains(t.actions, AwaitReturn) {
			s.next(s.Turn + 1)
			return
		}
	}
}
