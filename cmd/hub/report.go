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
	if s.walks() {
		s.reportByCluster(e)
		return
	}
	t, ok := s.task(e.Party)
	if !ok || e.Stage != s.Stage || e.Attempt != s.Attempt || s.Record(e.Party).Finished {
		return
	}
	s.learn(e)
	r := s.Record(e.Party)
	r.Started, r.Unsent = true, ""
	r.Finished = e.Finished
	r.Error = e.Error.clip()
	r.ClusterErrors = nil
	s.selectResolved(t, e)
	s.warn(t, e)
	for name, failed := range e.ClusterErrors {
		if i, ok := s.cluster(name); ok {
			if r.ClusterErrors == nil {
				r.ClusterErrors = map[string]Failure{}
			}
			r.ClusterErrors[name] = failed.clip()
			s.Clusters[i].FailedIn, s.Clusters[i].Failure = s.Stage, failed.clip()
		}
	}
	if r.Finished && !r.failed() && slices.Contains(t.actions, ValidateSource) {
		r.Error = Failure{Message: s.selectionError()}
	}
	s.Records[s.key(e.Party)] = r
	if e.Reason != "" && r.failed() {
		s.Reason = e.Reason
	}
}

// warn records what the source hub has found in ValidateSource.
func (s *State) warn(t task, e Report) {
	if !slices.Contains(t.actions, ValidateSource) {
		return
	}
	s.Warnings = nil
	for _, w := range e.Warnings {
		w, valid := w.valid()
		if _, known := s.cluster(w.Cluster); known && valid && len(s.Warnings) < MaxWarnings {
			s.Warnings = append(s.Warnings, w)
		}
	}
}

// reportByCluster records what a party reports of the clusters at its turns. A report on an earlier command is as good for
// a cluster that is still at the same turn.
func (s *State) reportByCluster(e Report) {
	r, ok := s.Records[s.key(e.Party)]
	present := e.Attempt == r.Attempt
	if !ok || e.Attempt > r.Attempt || present && (r.Finished || e.Stage != r.Stage) {
		return
	}
	s.learn(e)
	for _, name := range e.Done {
		if i, ok := s.cluster(name); ok && s.isAt(s.Clusters[i], e.Party, e.Attempt) && s.turnOf(s.Clusters[i]).party() == e.Party {
			s.finishTurn(i, e.Gone[name])
		}
	}
	if !present {
		return
	}
	r.Started, r.Unsent, r.Finished = true, "", e.Finished
	r.Error, r.ClusterErrors = e.Error.clip(), nil
	fail := func(i int, failed Failure) {
		if r.ClusterErrors == nil {
			r.ClusterErrors = map[string]Failure{}
		}
		c := &s.Clusters[i]
		r.ClusterErrors[c.Name] = failed
		c.FailedIn, c.Failure = s.Stage, failed
	}
	for i, c := range s.Clusters {
		if !s.isAt(c, e.Party, e.Attempt) {
			continue
		}
		t := s.turnOf(c)
		switch failed, named := e.ClusterErrors[c.Name]; {
		case named:
			fail(i, failed.clip())
		case e.Finished && r.Error == (Failure{}) && t.party() == e.Party:
			fail(i, Failure{Message: fmt.Sprintf("%s did not report that %s is done", e.Party, t.place())})
		}
	}
	s.Records[s.key(e.Party)] = r
}

// MaxDeniedRequests bounds the requests in a report and in the state. One is enough to find out which client has the token.
const MaxDeniedRequests = 10

// learn records what the target hub has denied, and which certificates it has issued. Whether a cluster stays there is known later.
func (s *State) learn(e Report) {
	if e.Party != Target {
		return
	}
	for _, request := range e.DeniedRequests {
		if request = clip(request); len(s.DeniedRequests) < MaxDeniedRequests && !slices.Contains(s.DeniedRequests, request) {
			s.DeniedRequests = append(slices.Clip(s.DeniedRequests), request)
		}
	}
	for name, expiry := range e.Certificates {
		if i, ok := s.cluster(name); ok {
			s.Clusters[i].Certificate = expiry.UTC()
		}
	}
}

// Awaits reports whether a report of a party on a command may change the state: it answers the present command, or an
// earlier one with orders that are still to be done.
func (s State) Awaits(p Party, stage api.Phase, attempt int64) bool {
	r := s.Record(p)
	if attempt == r.Attempt {
		return stage == r.Stage
	}
	return attempt < r.Attempt && slices.ContainsFunc(s.Clusters, func(c Cluster) bool { return s.isAt(c, p, attempt) })
}

// finishTurn ends the present turn of a cluster, and the way of the cluster after its last turn. gone is what the action
// did not find any more.
func (s *State) finishTurn(i int, gone string) {
	c := &s.Clusters[i]
	place := s.turnOf(*c).place()
	if gone != "" && place != DeleteCreated {
		s.endGone(c, gone)
		return
	}
	switch place {
	case DeleteCreated:
		c.Note = clip(gone) // the cluster is back
	case AwaitRegistration:
		c.State, c.FailedIn, c.Failure = Registered, "", Failure{}
	case AwaitReturn:
		c.State = Returned
	}
	c.Turn++
	c.Attempt = 0
	if c.Turn < len(s.way(*c)) {
		return
	}
	if c.returns() {
		c.State = Restored
		return
	}
	c.State, c.FailedIn, c.Failure = Moved, "", Failure{}
}

// endGone ends the migration of a cluster that a user has deleted at a hub. What the other hub has of it stays: it is the last that is
// known of the cluster, whose agent may be there.
func (s *State) endGone(c *Cluster, gone string) {
	keeps, turns := Target, s.wayBack()
	if !c.returns() {
		keeps, turns = Source, append(slices.Clone(turns), moving[c.Turn+1:]...)
	}
	if what := leftOf(turns, keeps); what != "" {
		gone += "; left on " + keeps.String() + " " + what
	}
	c.Note, c.State, c.Attempt = clip(gone), Gone, 0
}

// clusterFailure returns why a party has failed to take the present turn of a cluster.
func (s State) clusterFailure(c Cluster, p Party) (why Failure, failed bool) {
	r := s.Record(p)
	if !s.isAt(c, p, r.Attempt) {
		return Failure{}, false
	}
	if r.Error != (Failure{}) {
		return r.Error, true
	}
	why, failed = r.ClusterErrors[c.Name]
	return why, failed
}

// selectResolved selects the clusters of a resolved placement.
func (s *State) selectResolved(t task, e Report) {
	if slices.Contains(t.actions, ValidateSource) && e.Finished && s.Placement != "" && e.Error == (Failure{}) {
		s.selectClusters(e.Clusters)
		s.Clusters = s.Clusters[:min(len(s.Clusters), maxClusters+1)] // one more than the limit is enough to refuse them
	}
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
		r := s.Record(t.party)
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

// waitsFor returns the party that has not finished the present turn of the migration as a whole.
func (s State) waitsFor() Party {
	for _, t := range s.turn() {
		if r := s.Record(t.party); !r.Finished || r.failed() {
			return t.party
		}
	}
	return Manager
}
