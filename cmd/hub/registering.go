package hub

import (
	"slices"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// advanceRegistering decides on each cluster separately: in this phase, a failed cluster does not block the others.
func (s *State) advanceRegistering(now time.Time) bool {
	for _, t := range s.turn() {
		r := s.record(t.party)
		s.returnUnregistered(func(c Cluster) Failure {
			switch {
			case r.Error != (Failure{}):
				return r.Error
			case r.Finished && slices.Contains(t.actions, AwaitRegistration) && r.ClusterErrors[c.Name] == (Failure{}):
				return Failure{Message: "the target hub did not report the registration of the cluster"}
			}
			return r.ClusterErrors[c.Name]
		})
	}
	if s.hasClusterIn(Selected) {
		// The errors are stored with their clusters now, so the turn is finished for the others.
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

// settleRegistering ends phase Registering, when every cluster is either registered or returning.
func (s *State) settleRegistering(now time.Time) {
	switch {
	case !s.hasClusterIn(Registered):
		message := "no cluster was registered at the target hub"
		if i := slices.IndexFunc(s.Clusters, func(c Cluster) bool { return c.Failure != (Failure{}) }); i >= 0 {
			message += ", such as " + s.Clusters[i].Name + ": " + s.Clusters[i].Failure.String()
		}
		s.fail(api.ReasonNotRegistered.Name, message, now)
	default:
		if s.hasClusterIn(Returning) {
			s.Reason, s.Message = api.ReasonPartiallyRegistered.Name, "some clusters were not registered at the target hub, and return to the source hub"
		}
		s.beginPhase(api.PhaseCleaning, now)
	}
}

// returnUnregistered returns clusters to the source hub that are not registered and have failed.
func (s *State) returnUnregistered(failed func(Cluster) Failure) {
	for i, c := range s.Clusters {
		if c.State != Selected {
			continue
		}
		if f := failed(c); f != (Failure{}) {
			s.Clusters[i].State, s.Clusters[i].FailedIn, s.Clusters[i].Failure = Returning, api.PhaseRegistering, f.clip()
		}
	}
}
