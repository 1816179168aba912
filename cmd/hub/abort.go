package hub

import (
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

const (
	// lost is the message of a migration that a user ends without the target hub.
	lost = "a user has ended the migration without the target hub, which never answers again"
	// found is the message after the target hub has answered again.
	found = "a user has ended the migration without the target hub, which answers again"
)

// NeedsLose reports whether [Lose] changes a state: the migration waits for something that only the target hub can do, or still moves a
// cluster to it, or the event has not been yet.
func (s State) NeedsLose() bool {
	switch {
	case s.Settled():
		return false
	case !s.TargetLost:
		return true
	case s.walks():
		for _, c := range s.Clusters {
			if !c.HasEnded() && (!c.returns() || s.turnOf(c).has(Target)) {
				return true
			}
		}
		return false
	case ByCluster(s.Stage):
		// The source hub is told first that the migration has forgotten clusters.
		return s.turn().has(Target) && (!s.forgetsAtEnd() || s.Record(Source).Sent > 0)
	}
	return true
}

// lose returns every cluster whose klusterlet still knows the source hub, also one that is registered at the target hub. The source hub
// keeps what it has of the others: it is the last that is known of them.
func (s *State) lose(now time.Time) {
	if s.Settled() {
		return
	}
	if s.inFinalPhase() && !s.TargetLost {
		s.restartClock(now)
		s.repeat()
	}
	s.TargetLost = true
	for i, c := range s.Clusters {
		if t := s.turnOf(c); c.State == Registered && t != nil && t.place() == FinishMoved {
			s.returnCluster(i)
		}
	}
	s.abort(now)
	s.Message = lost
	switch {
	case s.walks():
		for i := range s.Clusters {
			s.loseTargetOf(i)
		}
	case ByCluster(s.Stage) && s.NeedsLose():
		s.beginTurn(s.Turn + 1)
	}
}

// NeedsFind reports whether [Find] changes a state.
func (s State) NeedsFind() bool { return s.TargetLost && !s.Settled() }

// find has the target hub take part again. What returns begins its way again, since the target may still accept it. The clusters that have ended
// without it keep their notes, and the target is told again what is for the migration as a whole.
func (s *State) find(now time.Time) {
	if !s.NeedsFind() {
		return
	}
	s.TargetLost = false
	s.Message = found
	s.restartClock(now)
	s.repeat()
	s.returnAll(Returning)
	if ByCluster(s.Stage) && !s.walks() {
		s.beginTurn(1)
	}
}

// abort ends a migration before phase Cleaning, in which the source hub deletes objects.
func (s *State) abort(now time.Time) {
	switch s.Phase {
	case api.PhasePending, api.PhaseValidating, api.PhaseInitializing, api.PhaseDeploying:
		s.fail(api.ReasonAborted.Name, aborted, now)
	case api.PhaseRegistering:
		s.abortRegistering(now)
	}
}

// forgetCluster ends the migration without a cluster. A command without the cluster replaces the present one.
func (s *State) forgetCluster(i int) {
	if s.Clusters[i].State == Registered {
		s.Clusters[i].Certificate = time.Time{} // the cluster has it at the target hub
	}
	for _, t := range s.turnOf(s.Clusters[i]) {
		s.Attempt++
		s.Records[s.key(t.party)] = Record{Stage: s.Stage, Attempt: s.Attempt}
	}
	s.Clusters[i].Note = s.Leaves(s.Clusters[i])
	s.Clusters[i].State = Forgotten
}

// loseTargetOf ends what a cluster waits for at the target hub.
func (s *State) loseTargetOf(i int) {
	c := &s.Clusters[i]
	switch {
	case c.HasEnded():
		return
	case !c.returns():
		s.forgetCluster(i)
		return
	}
	way := s.way(*c)
	for c.Turn < len(way) && way[c.Turn].has(Target) {
		c.Turn++
		c.Attempt = 0
	}
	if c.Turn == len(way) {
		c.State = Restored
		if what := leftOf(way, Target); what != "" {
			c.Note = "left on " + Target.String() + " " + what
		}
	}
}
