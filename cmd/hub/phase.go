package hub

import (
	"slices"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// beginPhase begins a phase.
func (s *State) beginPhase(stage api.Phase, now time.Time) {
	s.Phase, s.Stage = stage, stage
	s.Since, s.Thirds = now, 0
	s.beginTurn(0)
}

// beginTurn begins a turn with a new attempt.
func (s *State) beginTurn(turn int) {
	s.Turn = turn
	s.Attempt++
}

// nextTurn returns the index of the turn after the present one. It returns to the turn that waits for clusters, if
// skipTurn has left that turn before all clusters had returned.
func (s State) nextTurn() int {
	deletes := slices.ContainsFunc(s.turn(), func(t task) bool { return slices.Contains(t.actions, DeleteCreated) })
	if !deletes || !s.hasClusterIn(Returning, Registered) {
		return s.Turn + 1
	}
	return slices.IndexFunc(s.turns(), func(t turn) bool { return slices.Contains(t[0].actions, AwaitReturn) })
}

// finishStage begins the phase after the last turn of a stage. It returns false if the stage is the last one.
func (s *State) finishStage(now time.Time) bool {
	switch s.Phase {
	case api.PhaseValidating:
		s.beginPhase(api.PhaseInitializing, now)
	case api.PhaseInitializing:
		s.beginPhase(api.PhaseDeploying, now)
	case api.PhaseDeploying:
		s.beginPhase(api.PhaseRegistering, now)
	case api.PhaseRollbacking:
		s.endPhase(api.PhaseFailed, now)
	case api.PhaseCleaning:
		s.endPhase(api.PhaseCompleted, now)
	default:
		return false
	}
	return true
}

// endPhase sets phase Failed or Completed. Unfinished commands stay due: while a hub is unreachable, the rollback
// continues in phase Failed, and the cleanup in phase Completed.
func (s *State) endPhase(phase api.Phase, now time.Time) {
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
	s.beginPhase(api.PhaseRollbacking, now)
}

// returnAll makes every cluster return to the source hub.
func (s *State) returnAll() {
	for i := range s.Clusters {
		s.Clusters[i].State = Returning
	}
}

// repeat begins another attempt of failed tasks, in the stages that an error does not end.
func (s *State) repeat() {
	if s.Stage != api.PhaseRollbacking && s.Stage != api.PhaseCleaning {
		return
	}
	if s.inFinalPhase() {
		s.skipTurn()
	}
	if slices.ContainsFunc(s.turn(), func(t task) bool { return s.record(t.party).failed() }) {
		s.beginTurn(s.Turn)
	}
}

// skipTurn leaves a turn that may never finish, if the later turns do not need it. A target hub
// that does not answer must not prevent the source hub from reverting its klusterlets; a later
// command to the target includes the actions of the skipped turn. A cluster that does not return
// must not keep the other clusters' objects on the target hub; following returns to the turn.
func (s *State) skipTurn() {
	for _, t := range s.turn() {
		last := t.actions[len(t.actions)-1]
		if s.Stage == api.PhaseRollbacking && last == StopAccepting || s.hasClusterIn(Returned) && slices.Contains(t.actions, AwaitReturn) {
			s.beginTurn(s.Turn + 1)
			return
		}
	}
}
