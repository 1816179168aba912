package hub

import (
	"fmt"
	"maps"
	"slices"
	"time"

	api "github.com/godwit-dev/godwit/hub/api/v1alpha1"
)

// Event is what the manager learned, at a time of its own clock.
type Event interface{ at() time.Time }

// Tick says only how late it is.
type Tick struct{ At time.Time }

// Start begins a migration that is Pending and that no other one holds up.
type Start struct{ At time.Time }

// Wait keeps a migration Pending, since another one has one of its clusters.
type Wait struct {
	At  time.Time
	For string
}

// Rollback is what a user asks for by the annotation: it aborts a migration that is
// running, and repeats the rollback of one that has failed.
type Rollback struct{ At time.Time }

// Delete is the deletion of the migration: it aborts one that is running.
type Delete struct{ At time.Time }

// Sent says that the command of an effect was sent.
type Sent struct {
	At  time.Time
	Key string
}

// Report is the answer of a party to a command, or the result of an effect of the
// manager.
type Report struct {
	At      time.Time
	Party   Party
	Stage   api.Phase
	Attempt int64
	// Finished means that the party will do no more for this command. A report before
	// says only that it has the command, and which clusters are done.
	Finished bool
	// Reason is one of the documented constants, for errors of the manager.
	Reason string
	// Error is why the party can't do its task for any cluster.
	Error         string
	ClusterErrors map[string]string
	// Clusters are those that a placement selects.
	Clusters []string
	// Done are the clusters that have reached what the command is for: registered,
	// returned or deleted.
	Done []string
}

func (e Tick) at() time.Time     { return e.At }
func (e Start) at() time.Time    { return e.At }
func (e Wait) at() time.Time     { return e.At }
func (e Rollback) at() time.Time { return e.At }
func (e Delete) at() time.Time   { return e.At }
func (e Sent) at() time.Time     { return e.At }
func (e Report) at() time.Time   { return e.At }

// Step returns the state after an event. An event that does not fit leaves the state as it
// is. It is called again with the same event after a crash, also with a state of which
// only the shards were written.
func Step(s State, e Event) State {
	s = s.clone()
	switch e := e.(type) {
	case Tick:
		s.tick(e.At)
	case Start:
		s.start(e.At)
	case Wait:
		s.wait(e)
	case Rollback:
		s.rollback(e.At)
	case Delete:
		s.delete(e.At)
	case Sent:
		s.sent(e.Key)
	case Report:
		s.report(e)
	default:
		return s
	}
	// As often as needed, since a turn may have nothing to do.
	for s.advance(e.at()) {
	}
	return s
}

func (s *State) start(now time.Time) {
	if s.Phase == api.PhasePending && !s.Deleting {
		s.WaitingFor = ""
		s.enter(api.PhaseValidating, now)
	}
}

// wait goes back to Pending, but only as long as neither hub was touched.
func (s *State) wait(e Wait) {
	if s.Phase == api.PhasePending || s.Phase == api.PhaseValidating {
		s.Phase, s.Stage, s.WaitingFor = api.PhasePending, "", e.For
	}
}

func (s *State) rollback(now time.Time) {
	switch {
	case s.Phase == api.PhaseFailed && s.RollbackStage != "":
		s.returnAll()
		s.enter(api.PhaseRollbacking, now)
	default:
		s.abort(now)
	}
}

func (s *State) delete(now time.Time) {
	s.Deleting = true
	s.abort(now)
}

// abort ends a migration that has not come to Cleaning, in which the source hub deletes.
func (s *State) abort(now time.Time) {
	switch s.Phase {
	case api.PhasePending, api.PhaseValidating, api.PhaseInitializing, api.PhaseDeploying, api.PhaseRegistering:
		s.fail(api.ReasonAborted, "a user asked for the rollback, or deleted the migration", now)
	}
}

func (s *State) sent(key string) {
	for _, e := range Due(*s) {
		if e.Key == key && e.Party != Manager {
			r := s.record(e.Party)
			r.Sent = s.Thirds + 1
			s.setRecord(e.Party, r)
		}
	}
}

// tick counts the thirds of the timeout. After a third, commands without an answer are due
// again; and where nothing but repetition helps, commands that failed are as well.
func (s *State) tick(now time.Time) {
	if s.Phase == api.PhasePending || s.Settled() {
		return
	}
	thirds := int(now.Sub(s.Since) / (s.timeout() / 3))
	if thirds <= s.Thirds {
		return
	}
	s.Thirds = thirds
	if !s.ended() && thirds >= 3 {
		s.expire(now)
		return
	}
	s.repeat()
}

// repeat calls for another attempt at what has failed, in stages that are not ended by an
// error.
func (s *State) repeat() {
	if s.Stage != api.PhaseRollbacking && s.Stage != api.PhaseCleaning {
		return
	}
	if s.ended() {
		s.passOver()
	}
	if slices.ContainsFunc(s.turn(), func(t task) bool { return s.record(t.party).failed() }) {
		s.next(s.Turn)
	}
}

// expire ends a phase that took too long.
func (s *State) expire(now time.Time) {
	late := fmt.Sprintf("%s did not finish phase %s within %s", s.waitsFor(), s.Stage, s.timeout())
	switch s.Phase {
	case api.PhaseRegistering:
		s.giveBack(func(Cluster) string { return late })
		s.settleRegistering(now)
	case api.PhaseRollbacking:
		s.end(api.PhaseFailed, now)
	case api.PhaseCleaning:
		s.end(api.PhaseCompleted, now)
	default:
		s.fail(api.ReasonTimeout, late, now)
	}
}

// waitsFor names the party that has not finished the present turn.
func (s State) waitsFor() Party {
	for _, t := range s.turn() {
		if r := s.record(t.party); len(s.orders(t)) > 0 && (!r.Finished || r.failed()) {
			return t.party
		}
	}
	return Manager
}

// passOver leaves a turn that may never be finished, if the later ones don't need it. A
// target that does not answer must not keep the source's klusterlets from being reverted;
// what it is told later includes the turn. A cluster that does not return must not keep
// the others' objects on the target; the turn comes again.
func (s *State) passOver() {
	for _, t := range s.turn() {
		last := t.actions[len(t.actions)-1]
		if s.Stage == api.PhaseRollbacking && last == StopAccepting || s.any(Returned) && slices.Contains(t.actions, AwaitReturn) {
			s.next(s.Turn + 1)
			return
		}
	}
}

func (s *State) report(e Report) {
	t, ok := s.task(e.Party)
	if !ok || e.Stage != s.Stage || e.Attempt != s.Attempt || s.record(e.Party).Finished {
		return
	}
	r := s.record(e.Party)
	r.Started = true
	r.Finished = e.Finished
	r.Error = clip(e.Error)
	r.ClusterErrors = nil
	s.takeResult(t, e)
	for name, message := range e.ClusterErrors {
		if i, ok := s.cluster(name); ok {
			if r.ClusterErrors == nil {
				r.ClusterErrors = map[string]string{}
			}
			r.ClusterErrors[name] = clip(message)
			s.Clusters[i].FailedIn, s.Clusters[i].Message = s.Stage, clip(message)
		}
	}
	if r.Finished && !r.failed() {
		r.Error = s.unreached(t)
	}
	s.setRecord(e.Party, r)
	if e.Reason != "" && r.failed() {
		s.Reason = e.Reason
	}
}

// takeResult takes the clusters of a report.
func (s *State) takeResult(t task, e Report) {
	if slices.Contains(t.actions, ValidateSource) && e.Finished && s.Placement != "" && e.Error == "" {
		s.selectClusters(e.Clusters)
	}
	for _, name := range e.Done {
		i, ok := s.cluster(name)
		if !ok {
			continue
		}
		for _, a := range t.actions {
			if next := s.reached(a, s.Clusters[i].State); next != s.Clusters[i].State {
				s.Clusters[i].State = next
				if next == Registered || next == Moved {
					s.Clusters[i].FailedIn, s.Clusters[i].Message = "", ""
				}
				break // one report takes a cluster one step
			}
		}
	}
}

// unreached is the error of a party that says that it is finished, but not that every
// cluster is done. What is not known is not taken for done.
func (s State) unreached(t task) string {
	if slices.Contains(t.actions, ValidateSource) && len(s.Clusters) == 0 {
		return fmt.Sprintf("placement %s selects no cluster", s.Placement)
	}
	for _, order := range s.orders(t) {
		for _, name := range order.Clusters {
			i, _ := s.cluster(name)
			if s.reached(order.Action, s.Clusters[i].State) != s.Clusters[i].State && s.Stage != api.PhaseRegistering {
				return fmt.Sprintf("%s did not report that %s is done for cluster %s", t.party, order.Action, name)
			}
		}
	}
	return ""
}

// advance takes one step that needs no further event, and reports whether it did.
func (s *State) advance(now time.Time) bool {
	switch s.Phase {
	case api.PhasePending:
		return false
	case api.PhaseValidating, api.PhaseInitializing, api.PhaseDeploying:
		if failed := s.failure(); failed != "" {
			s.fail(s.failureReason(), failed, now)
			return true
		}
	case api.PhaseRegistering:
		if s.advanceRegistering(now) {
			return true
		}
	}
	turns := s.turns()
	if s.Turn >= len(turns) {
		return s.finishStage(now)
	}
	for _, t := range s.turn() {
		if r := s.record(t.party); len(s.orders(t)) > 0 && (!r.Finished || r.failed()) {
			return false
		}
	}
	s.next(s.following())
	return true
}

// following is the turn after the present one: the next, or again the one that waits for
// clusters which were not there when it was passed over.
func (s State) following() int {
	deletes := slices.ContainsFunc(s.turn(), func(t task) bool { return slices.Contains(t.actions, DeleteCreated) })
	if !deletes || !s.any(Returning, Registered) {
		return s.Turn + 1
	}
	return slices.IndexFunc(s.turns(), func(t turn) bool { return slices.Contains(t[0].actions, AwaitReturn) })
}

// next begins a turn, with an attempt of its own.
func (s *State) next(turn int) {
	s.Turn = turn
	s.Attempt++
}

// finishStage follows the last turn of a stage.
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

// enter begins a phase.
func (s *State) enter(stage api.Phase, now time.Time) {
	s.Phase, s.Stage = stage, stage
	s.Since, s.Thirds = now, 0
	s.next(0)
}

// end leaves what is not finished due: with an unreachable hub, the rollback continues in
// phase Failed, and the cleanup in phase Completed.
func (s *State) end(phase api.Phase, now time.Time) {
	s.Phase, s.Since, s.Thirds = phase, now, 0
	s.repeat()
}

// fail ends the way forward.
func (s *State) fail(reason, message string, now time.Time) {
	if s.Reason == "" || reason == api.ReasonAborted {
		s.Reason = reason
	}
	s.Message = clip(message)
	stage := s.Stage
	if s.Phase == api.PhasePending || s.Phase == api.PhaseValidating {
		// Neither hub was touched.
		s.Phase, s.Stage, s.WaitingFor = api.PhaseFailed, "", ""
		s.Since, s.Thirds = now, 0
		return
	}
	s.RollbackStage = stage
	s.returnAll()
	s.enter(api.PhaseRollbacking, now)
}

// failure is what a party has reported against the present turn.
func (s State) failure() string {
	for _, t := range s.turn() {
		r := s.record(t.party)
		if r.Error != "" {
			return r.Error
		}
		if names := slices.Sorted(maps.Keys(r.ClusterErrors)); r.Finished && len(names) > 0 {
			return fmt.Sprintf("phase %s failed on %s for cluster %s: %s", s.Stage, t.party, some(names), r.ClusterErrors[names[0]])
		}
	}
	return ""
}

func (s State) failureReason() string {
	if s.Stage == api.PhaseValidating {
		return api.ReasonClustersInvalid
	}
	return api.ReasonFailed
}

// returnAll makes every cluster one that belongs to the source hub.
func (s *State) returnAll() {
	for i := range s.Clusters {
		s.Clusters[i].State = Returning
	}
}

// giveBack makes clusters that are not registered return to the source hub, if why says
// why.
func (s *State) giveBack(why func(Cluster) string) {
	for i, c := range s.Clusters {
		if c.State != Selected {
			continue
		}
		if message := why(c); message != "" {
			s.Clusters[i].State, s.Clusters[i].FailedIn, s.Clusters[i].Message = Returning, api.PhaseRegistering, clip(message)
		}
	}
}

// advanceRegistering decides on each cluster by itself, since in this phase one that fails
// does not hold up the others.
func (s *State) advanceRegistering(now time.Time) bool {
	for _, t := range s.turn() {
		r := s.record(t.party)
		s.giveBack(func(c Cluster) string {
			switch {
			case r.Error != "":
				return r.Error
			case r.ClusterErrors[c.Name] != "":
				return r.ClusterErrors[c.Name]
			case r.Finished && slices.Contains(t.actions, AwaitRegistration):
				return "the target hub did not report the registration of the cluster"
			}
			return ""
		})
	}
	if s.any(Selected) {
		// The errors are with their clusters now; the turn is finished for the others.
		for _, t := range s.turn() {
			if r := s.record(t.party); r.Finished && r.failed() {
				r.ClusterErrors = nil
				s.setRecord(t.party, r)
			}
		}
		return false
	}
	s.settleRegistering(now)
	return true
}

// settleRegistering follows when every cluster is decided on.
func (s *State) settleRegistering(now time.Time) {
	switch {
	case !s.any(Registered):
		message := "no cluster was registered at the target hub"
		if i := slices.IndexFunc(s.Clusters, func(c Cluster) bool { return c.Message != "" }); i >= 0 {
			message += ", such as " + s.Clusters[i].Name + ": " + s.Clusters[i].Message
		}
		s.fail(api.ReasonNotRegistered, message, now)
	default:
		if s.any(Returning) {
			s.Reason, s.Message = api.ReasonPartiallyRegistered, "some clusters were not registered at the target hub, and return to the source hub"
		}
		s.enter(api.PhaseCleaning, now)
	}
}
