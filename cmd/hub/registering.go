package hub

import (
	"slices"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// advanceRegistering decides on each cluster separately: in this phase, a cluster that fails does
// not hold up the others.
func (s *State) advanceRegistering(now time.Time) bool {
	for _, t := range s.turn() {
		r := s.record(t.party)
		s.returnUnregistered(func(c Cluster) string {
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

// settleRegistering ends phase Registering, when every cluster is either registered or returning.
func (s *State) settleRegistering(now time.Time) {
	switch {
	case !s.any(Registered):
		message := "no cluster was registered at the target hub"
		if i := slices.IndexFunc(s.Clusters, func(c Cluster) bool { return c.Message != "" }); i >= 0 {
			message += ", such as " + s.Clusters[i].Name + ": " + s.Clusters[i].Message
		}
		s.fail(api.ReasonNotRegistered.Name, message, now)
	default:
		if s.any(Returning) {
			s.Reason, s.Message = api.ReasonPartiallyRegistered.Name, "some clusters were not registered at the target hub, and return to the source hub"
		}
		s.enter(api.PhaseCleaning, now)
	}
}

// returnUnregistered makes those clusters return to the source hub that are not registered and
// for which message is not empty.
func (s *State) returnUnregistered(message func(Cluster) string) {
	for i, c := range s.Clusters {
		if c.State != Selected {
			continue
		}
		if m := message(c); m != "" {
			s.Clusters[i].State, s.Clusters[i].FailedIn, s.Clusters[i].Message = Returning, api.PhaseRegistering, clip(m)
		}
	}
}
