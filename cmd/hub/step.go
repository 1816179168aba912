package hub

import (
	"fmt"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// Step returns the state after an event. An event that does not fit the state changes nothing. After a crash, the
// manager calls Step again with the same event, possibly with a state of which only the shards were written.
func Step(s State, e Event) State {
	before := s.Clusters
	s = s.clone()
	switch e := e.(type) {
	case Tick:
		s.tick(e.At)
	case Resume:
		s.resume()
	case Continue:
		s.continueAfter(e.Paused)
	case Start:
		s.start(e.At)
	case Wait:
		s.wait(e)
	case Rollback:
		s.rollback(e.At)
	case Delete:
		s.delete(e.At)
	case Lose:
		s.lose(e.At)
	case Find:
		s.find(e.At)
	case Forget:
		s.forget(e.Clusters)
	case Sent:
		s.sent(e.Key, "")
	case Unsent:
		s.sent(e.Key, clip(e.Message))
	case Report:
		s.report(e)
	default:
		return s
	}
	// Repeat: a turn may have nothing to do.
	for s.advance(e.occurredAt()) {
	}
	s.assign()
	s.stampClusters(before, e.occurredAt())
	return s
}

// stampClusters sets Since of each cluster whose state has changed.
func (s *State) stampClusters(before []Cluster, now time.Time) {
	for i := range s.Clusters {
		c := &s.Clusters[i]
		if c.State != Selected && (i >= len(before) || before[i].Name != c.Name || before[i].State != c.State) {
			c.Since = now.UTC().Truncate(time.Millisecond)
		}
	}
}

// resume makes an action of the manager due again if its result was stored without the commit: the commit has the
// reason of a failure. Reports of hubs need nothing: the brokers deliver them again.
func (s *State) resume() {
	if r := s.Record(Manager); r.Finished && (s.Stage == api.PhaseValidating || s.Stage == api.PhaseInitializing) {
		delete(s.Records, s.key(Manager))
	}
}

// continueAfter makes each command due again that has no final report.
func (s *State) continueAfter(pause time.Duration) {
	if !s.Since.IsZero() {
		s.Since = s.Since.Add(pause)
	}
	for key, r := range s.Records {
		if !r.Finished {
			r.Sent = 0
			s.Records[key] = r
		}
	}
}

func (s *State) start(now time.Time) {
	if s.Phase == api.PhasePending && !s.Deleting {
		s.WaitingFor = ""
		s.beginPhase(api.PhaseValidating, now)
	}
}

// wait returns to Pending, but only while the migration has changed neither hub.
func (s *State) wait(e Wait) {
	if s.Phase == api.PhasePending || s.Phase == api.PhaseValidating {
		s.Phase, s.Stage, s.WaitingFor = api.PhasePending, "", e.For
	}
}

func (s *State) rollback(now time.Time) {
	switch {
	case s.Phase == api.PhaseFailed && s.RollbackStage != "":
		if !s.Settled() { // what has ended may have left with another migration since
			s.returnAll(Returning, Returned)
			s.beginPhase(api.PhaseRollbacking, now)
		}
	default:
		s.abort(now)
	}
}

func (s *State) delete(now time.Time) {
	s.Deleting = true
	if s.inFinalPhase() && !s.Settled() {
		s.restartClock(now)
		s.repeat()
	}
	s.abort(now)
}

// Forgettable returns those of some clusters that the migration has not ended with, and that it can end without now.
func (s State) Forgettable(names []string) []string {
	var all []string
	for _, name := range names {
		if i, ok := s.cluster(name); ok && s.walks() && !s.Clusters[i].HasEnded() {
			all = append(all, name)
		}
	}
	return all
}

// forget ends the migration without clusters, which stay as they are.
func (s *State) forget(names []string) {
	if !s.walks() {
		return
	}
	for _, name := range names {
		i, ok := s.cluster(name)
		if !ok || s.Clusters[i].HasEnded() {
			continue
		}
		s.forgetCluster(i)
	}
}

// sent records that a command was sent, or why it can't be.
func (s *State) sent(key, unsent string) {
	for _, e := range Due(*s) {
		if e.Key != key || e.Party == Manager {
			continue
		}
		r := s.Record(e.Party)
		r.Unsent = unsent
		if unsent == "" {
			r.Sent = s.Thirds + 1
		}
		s.Records[s.key(e.Party)] = r
	}
}

// tick counts the thirds of the timeout. After each third, commands without a final report are due again. In
// Rollbacking and Cleaning, failed commands are due again too.
func (s *State) tick(now time.Time) {
	if s.Phase == api.PhasePending || s.Settled() {
		return
	}
	thirds := int(now.Sub(s.Since) / (s.timeout() / 3))
	if thirds <= s.Thirds {
		return
	}
	s.Thirds = thirds
	switch {
	case thirds >= 3 && !s.inFinalPhase():
		s.expire(now)
	case thirds >= 3 && (s.Deleting || s.TargetLost):
		s.Abandoned = true // the end must not wait for a hub or a cluster that never returns
	default:
		s.repeat()
	}
}

// expire ends a phase that took too long.
func (s *State) expire(now time.Time) {
	switch s.Phase {
	case api.PhaseRegistering:
		s.returnUnregistered(s.lateRegistration)
		s.settleRegistering(now)
	case api.PhaseRollbacking:
		s.endPhase(api.PhaseFailed, now)
	case api.PhaseCleaning:
		s.endPhase(api.PhaseCompleted, now)
	default:
		s.fail(api.ReasonTimeout.Name, fmt.Sprintf("%s did not finish phase %s within %s", s.waitsFor(), s.Stage, s.timeout()), now)
	}
}

// advance takes one step that needs no further event. It returns false if no step was possible.
func (s *State) advance(now time.Time) bool {
	switch {
	case s.Phase == api.PhasePending, s.Settled():
		return false
	case s.Phase == api.PhaseRegistering:
		return s.advanceRegistering(now)
	case s.walks():
		if s.everyClusterHasEnded() {
			s.beginTurn(1)
		}
		return !s.walks()
	case !ByCluster(s.Stage):
		if failed := s.failure(); failed != "" {
			s.fail(s.failureReason(), failed, now)
			return true
		}
	}
	if s.turn() == nil {
		return s.finishStage(now)
	}
	for _, t := range s.turn() {
		if r := s.Record(t.party); !r.Finished || r.failed() {
			return false
		}
	}
	s.beginTurn(s.Turn + 1)
	return true
}
