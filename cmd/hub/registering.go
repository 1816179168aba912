package hub

import (
	"fmt"
	"slices"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// advanceRegistering returns the clusters that have failed before they were registered. It ends the phase when every
// cluster is either registered or returns.
func (s *State) advanceRegistering(now time.Time) bool {
	s.returnUnregistered(func(c Cluster) Failure {
		for _, t := range s.turnOf(c) {
			if f, failed := s.clusterFailure(c, t.party); failed {
				return f
			}
		}
		return Failure{}
	})
	if s.hasClusterIn(Selected) {
		return false
	}
	s.settleRegistering(now)
	return true
}

// settleRegistering ends phase Registering.
func (s *State) settleRegistering(now time.Time) {
	switch {
	case !s.hasClusterIn(Registered, Moved):
		message := "no cluster was registered at the target hub"
		if i := slices.IndexFunc(s.Clusters, func(c Cluster) bool { return c.Failure != (Failure{}) }); i >= 0 {
			message += ", such as " + s.Clusters[i].Name + ": " + s.Clusters[i].Failure.String()
		}
		s.fail(api.ReasonNotRegistered.Name, message, now)
	default:
		if s.hasClusterIn(Returning, Returned, Restored, Gone, Forgotten) {
			s.Reason, s.Message = api.ReasonPartiallyRegistered.Name, "some clusters were not registered at the target hub, and return to the source hub"
		}
		s.beginPhase(api.PhaseCleaning, now)
	}
}

// aborted is the message of a migration that a user has aborted.
const aborted = "a user asked for the rollback, or deleted the migration"

// abortRegistering returns the clusters that are not registered. The target hub finishes those that are.
func (s *State) abortRegistering(now time.Time) {
	if !s.hasClusterIn(Registered, Moved) {
		s.fail(api.ReasonAborted.Name, aborted, now)
		return
	}
	s.returnAll(Selected)
	s.settleRegistering(now)
	s.Message = aborted + ": the clusters that were registered at the target hub by then stay there, and the others return to the source hub"
}

// returnUnregistered returns clusters to the source hub that are not registered and have failed.
func (s *State) returnUnregistered(failed func(Cluster) Failure) {
	for i, c := range s.Clusters {
		if c.State != Selected {
			continue
		}
		if f := failed(c); f != (Failure{}) {
			s.Clusters[i].FailedIn, s.Clusters[i].Failure = api.PhaseRegistering, f.clip()
			s.returnCluster(i)
		}
	}
}

// lateRegistration returns the failure of a cluster that is not registered at the end of the phase.
func (s State) lateRegistration(c Cluster) Failure {
	return Failure{Message: fmt.Sprintf("%s did not finish phase %s within %s", s.turnOf(c).party(), s.Stage, s.timeout())}
}
