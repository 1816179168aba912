package hub

import (
	"slices"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// beginPhase begins a phase. Clusters that take their turns by themselves continue.
func (s *State) beginPhase(stage api.Phase, now time.Time) {
	s.Phase, s.Stage = stage, stage
	s.restartClock(now)
	if !ByCluster(stage) {
		s.beginTurn(0)
		return
	}
	s.Turn = 0
}

// restartClock begins the time of a phase. What was sent counts as sent in its first third.
func (s *State) restartClock(now time.Time) {
	s.Since, s.Thirds = now, 0
	for k, r := range s.Records {
		r.Sent = min(r.Sent, 1)
		s.Records[k] = r
	}
}

// beginTurn begins a turn of the migration as a whole with a new attempt.
func (s *State) beginTurn(turn int) {
	s.Turn = turn
	s.Attempt++
	for _, p := range s.parties() {
		s.Records[s.key(p)] = Record{Stage: s.Stage, Attempt: s.Attempt}
	}
}

// assign makes a new command of each party that has a cluster at one of its turns without a command. The commands have
// the orders of all clusters at the party's turns.
func (s *State) assign() {
	arrived := map[Party]bool{}
	for i := range s.Clusters {
		c := &s.Clusters[i]
		isNew := c.Attempt == 0
		for _, t := range s.turnOf(*c) {
			isNew = isNew || s.Record(t.party).Attempt < c.Attempt // the record was not written to every ConfigMap
		}
		for _, t := range s.turnOf(*c) {
			if isNew {
				c.Attempt = s.Attempt + 1
				arrived[t.party] = true
			}
		}
	}
	if len(arrived) == 0 {
		return
	}
	s.Attempt++
	for p := range arrived {
		s.Records[s.key(p)] = Record{Stage: s.Stage, Attempt: s.Attempt}
	}
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
	s.Phase = phase
	s.restartClock(now)
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
		s.Phase, s.Stage, s.Turn, s.WaitingFor = api.PhaseFailed, "", 0, ""
		s.Since, s.Thirds = now, 0
		return
	}
	s.RollbackStage = stage
	s.returnAll(Selected)
	s.beginPhase(api.PhaseRollbacking, now)
}

// returnAll begins the way back of all clusters in one of the states.
func (s *State) returnAll(states ...ClusterState) {
	for i := range s.Clusters {
		if slices.Contains(states, s.Clusters[i].State) {
			s.returnCluster(i)
		}
	}
}

// returnCluster begins the way back of a cluster.
func (s *State) returnCluster(i int) {
	s.Clusters[i].State, s.Clusters[i].Turn, s.Clusters[i].Attempt = Returning, 0, 0
}

// repeat begins another attempt of failed tasks, in the stages that an error does not end.
func (s *State) repeat() {
	switch {
	case s.walks():
		if s.inFinalPhase() {
			s.skipTurns()
		}
		for i, c := range s.Clusters {
			for _, t := range s.turnOf(c) {
				if _, failed := s.clusterFailure(c, t.party); failed {
					s.Clusters[i].Attempt = 0
				}
			}
		}
	case ByCluster(s.Stage):
		for _, t := range s.turn() {
			if s.Record(t.party).failed() {
				s.beginTurn(s.Turn)
				return
			}
		}
	}
}

// skipTurns leaves turns that may never finish, if the later turns do not need them: a target hub that does not answer
// must not prevent the source hub from reverting its klusterlets. A later command to the target includes the action.
func (s *State) skipTurns() {
	for i, c := range s.Clusters {
		if t := s.turnOf(c); t != nil && t.place() == StopAccepting {
			s.Clusters[i].Turn++
			s.Clusters[i].Attempt = 0
		}
	}
}
