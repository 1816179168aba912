package hub

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// maxClusters bounds the clusters of a migration. Admission has the same limit for a list.
const maxClusters = 5000

// report records the report of a party, if it is about the present command.
func (s *State) report(e Report) {
	t, ok := s.task(e.Party)
	if !ok || e.Stage != s.Stage || e.Attempt != s.Attempt || s.record(e.Party).Finished {
		return
	}
	r := s.record(e.Party)
	r.Started, r.Unsent = true, ""
	r.Finished = e.Finished
	r.Error = e.Error.clip()
	r.ClusterErrors = nil
	s.applyResult(t, e)
	for name, failed := range e.ClusterErrors {
		if i, ok := s.cluster(name); ok {
			if r.ClusterErrors == nil {
				r.ClusterErrors = map[string]Failure{}
			}
			r.ClusterErrors[name] = failed.clip()
			s.Clusters[i].FailedIn, s.Clusters[i].Failure = s.Stage, failed.clip()
		}
	}
	if r.Finished && !r.failed() {
		r.Error = Failure{Message: s.unfinishedCluster(t)}
	}
	s.setRecord(e.Party, r)
	if e.Reason != "" && r.failed() {
		s.Reason = e.Reason
	}
}

// applyResult changes the states of the clusters that a report names.
func (s *State) applyResult(t task, e Report) {
	if slices.Contains(t.actions, ValidateSource) && e.Finished && s.Placement != "" && e.Error == (Failure{}) {
		s.selectClusters(e.Clusters)
		s.Clusters = s.Clusters[:min(len(s.Clusters), maxClusters+1)] // one more than the limit is enough to refuse them
	}
	for _, name := range e.Done {
		i, ok := s.cluster(name)
		if !ok {
			continue
		}
		for _, a := range t.actions {
			if next := s.stateAfter(a, s.Clusters[i].State); next != s.Clusters[i].State {
				s.Clusters[i].State = next
				if next == Registered || next == Moved {
					s.Clusters[i].FailedIn, s.Clusters[i].Failure = "", Failure{}
				}
				break // one report advances a cluster by one state
			}
		}
	}
}

// unfinishedCluster returns an error message if a party has finished without reporting every cluster as done.
func (s State) unfinishedCluster(t task) string {
	if slices.Contains(t.actions, ValidateSource) {
		if wrong := s.selectionError(); wrong != "" {
			return wrong
		}
	}
	for _, order := range s.orders(t) {
		for _, name := range order.Clusters {
			i, _ := s.cluster(name)
			if s.stateAfter(order.Action, s.Clusters[i].State) != s.Clusters[i].State && s.Stage != api.PhaseRegistering {
				return fmt.Sprintf("%s did not report that %s is done for cluster %s", t.party, order.Action, name)
			}
		}
	}
	return ""
}

// selectionError returns what is wrong with the clusters that a placement selects. Admission checks a list in the same
// way.
func (s State) selectionError() string {
	switch {
	case len(s.Clusters) == 0:
		return fmt.Sprintf("placement %s selects no cluster", s.Placement)
	case len(s.Clusters) > maxClusters:
		return fmt.Sprintf("placement %s selects more than %d clusters: make several migrations of them", s.Placement, maxClusters)
	}
	for _, c := range s.Clusters {
		switch {
		case c.Name == s.From || c.Name == s.To:
			return fmt.Sprintf("placement %s selects hub %s, which can't be moved by a migration between it and another hub", s.Placement, c.Name)
		case len(validation.IsDNS1123Label(c.Name)) > 0:
			return fmt.Sprintf("placement %s selects %q, which is not the name of a managed cluster", s.Placement, clip(c.Name))
		}
	}
	return ""
}

// failure returns the error that a party has reported in the present turn.
func (s State) failure() string {
	for _, t := range s.turn() {
		r := s.record(t.party)
		if r.Error != (Failure{}) {
			return r.Error.String()
		}
		if names := slices.Sorted(maps.Keys(r.ClusterErrors)); r.Finished && len(names) > 0 {
			return fmt.Sprintf("phase %s failed on %s for cluster %s: %s", s.Stage, t.party, firstNames(names), r.ClusterErrors[names[0]])
		}
	}
	return ""
}

func (s State) failureReason() string {
	if s.Stage == api.PhaseValidating {
		return api.ReasonClustersInvalid.Name
	}
	return api.ReasonFailed.Name
}

// waitsFor returns the party that has not finished the present turn.
func (s State) waitsFor() Party {
	for _, t := range s.turn() {
		if r := s.record(t.party); len(s.orders(t)) > 0 && (!r.Finished || r.failed()) {
			return t.party
		}
	}
	return Manager
}
