package hub

import (
	"fmt"
	"strings"
	"testing"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// TestPlacementSelectsTooMany: a placement is bounded as a list is, also if the source hub
// reports more than there can be.
//
// Matrix: H11.
func TestPlacementSelectsTooMany(t *testing.T) {
	selected := func(n int) State {
		r := newRun(t)
		r.state.Placement = "all"
		r.step(Start{At: r.now})
		r.answer(Manager)
		r.report(Source, func(e *Report) {
			for i := range n {
				e.Clusters = append(e.Clusters, fmt.Sprintf("c%d", i))
			}
		})
		return r.state
	}
	if s := selected(maxClusters); s.Phase != api.PhaseValidating || len(s.Clusters) != maxClusters {
		t.Errorf("%d clusters: phase %s, %s, want Validating", maxClusters, s.Phase, s.Message)
	}
	s := selected(100_000)
	if s.Phase != api.PhaseFailed || s.Reason != api.ReasonClustersInvalid.Name || !strings.Contains(s.Message, "more than 5000 clusters") || len(s.Clusters) > maxClusters+1 {
		t.Errorf("100,000 clusters: phase %s, %s, %d are stored, want Failed", s.Phase, s.Message, len(s.Clusters))
	}
}

// TestOneOfTen: one of ten clusters is not registered. Nine move, and it returns.
//
// Matrix: H39.
func TestOneOfTen(t *testing.T) {
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("c%d", i))
	}
	r := newRun(t, names...)
	r.until(api.PhaseRegistering)
	r.answer(Target)
	r.answer(Source)
	r.report(Target, func(e *Report) {
		e.Done = names[:9]
		e.ClusterErrors = map[string]Failure{"c9": {"SigningRequestDenied", "its request is not approved"}}
	})
	r.until(api.PhaseCompleted)
	if s := r.state; len(s.clustersIn(Moved)) != 9 || len(s.clustersIn(Restored)) != 1 || !s.Settled() || s.Reason != api.ReasonPartiallyRegistered.Name || s.RollbackStage != "" {
		t.Errorf("moved %v, restored %v, reason %s, rollback of %q", s.clustersIn(Moved), s.clustersIn(Restored), s.Reason, s.RollbackStage)
	}
	failures := r.state.Failures()
	if len(failures) != 1 || failures[0].Cluster != "c9" || failures[0].Phase != api.PhaseRegistering || failures[0].Message != "SigningRequestDenied: its request is not approved" {
		t.Errorf("failures are %+v, want c9 with its reason", failures)
	}
}

// TestTokensOutlast: no way through the phases takes longer than the time for which tokens are
// valid, whether or not the hubs answer.
//
// Matrix: H25.
func TestTokensOutlast(t *testing.T) {
	last := []api.Phase{api.PhaseValidating, api.PhaseInitializing, api.PhaseDeploying, api.PhaseRegistering, api.PhaseCleaning}
	for _, timeouts := range []Timeouts{{Reconnect: DefaultReconnect}, {Stage: 10 * time.Minute, Reconnect: DefaultReconnect}, {Stage: 24 * time.Hour, Reconnect: time.Hour}} {
		for _, silent := range last {
			for _, partial := range []bool{false, true} {
				r := newRun(t, "c1", "c2")
				r.state.Timeouts = timeouts
				r.step(Start{At: r.now})
				r.wait(silent, partial)
				if took := r.now.Sub(epoch); took > timeouts.Total() || !r.state.inFinalPhase() {
					t.Errorf("timeouts %v, hubs silent from %s on, partial %v: phase %s after %s, and tokens are valid for %s", timeouts, silent, partial, r.state.Phase, took, timeouts.Total())
				}
			}
		}
	}
}

// wait goes through the phases to the end. Every phase takes all of its time but for an instant,
// and from one on no hub answers. A partial migration registers c1 alone.
func (r *run) wait(silent api.Phase, partial bool) {
	r.t.Helper()
	for range 100 {
		deadline, ok := Deadline(r.state)
		if r.state.inFinalPhase() || !ok {
			return
		}
		phase := r.state.Phase
		if StageNumber(phase) >= StageNumber(silent) {
			if partial && phase == api.PhaseRegistering && r.state.hasClusterIn(Selected) {
				r.now = r.state.Since.Add(r.state.timeout() - time.Nanosecond)
				r.registerOne()
			}
			r.now = deadline
			r.step(Tick{At: r.now})
			continue
		}
		r.now = r.state.Since.Add(r.state.timeout() - time.Nanosecond)
		for r.state.Phase == phase {
			r.answer(Due(r.state)[0].Party)
		}
	}
	r.t.Fatalf("the migration does not end: phase %s", r.state.Phase)
}

// registerOne answers in Registering as far as c1 is concerned.
func (r *run) registerOne() {
	if r.state.Turn == 0 {
		r.report(Target, func(e *Report) { e.Done = []string{"c1"}; e.ClusterErrors = map[string]Failure{"c2": {Message: "no"}} })
		return
	}
	r.report(Target, func(e *Report) { e.Finished = false; e.Done = []string{"c1"} })
}

// TestNotesOfCertificates: the notes name each cluster with a certificate that is not of use any more, and no cluster that has moved.
//
// Matrix: H140.
func TestNotesOfCertificates(t *testing.T) {
	s, expiry := State{}, time.Date(2027, 11, 29, 20, 30, 0, 0, time.UTC)
	states := []ClusterState{Restored, Gone, Forgotten, Moved, Registered}
	for i := range 100 {
		s.Clusters = append(s.Clusters, Cluster{Name: fmt.Sprintf("cluster-%02d", i), State: states[i%len(states)], Certificate: expiry})
	}
	notes := s.NotesOfCertificates()
	for _, note := range notes {
		if len(note) > maxNote || !strings.Contains(note, "rotate the CA") {
			t.Errorf("%d bytes: %s", len(note), note)
		}
	}
	for _, c := range s.Clusters {
		named := strings.Contains(strings.Join(notes, " "), c.Name+" until 2027-11-29T20:30:00Z")
		if stays := c.State == Moved || c.State == Registered; named == stays {
			t.Errorf("%s is %s, and a note names it: %v", c.Name, c.State, named)
		}
	}
	s.Clusters = s.Clusters[:1]
	if notes := s.NotesOfCertificates(); len(notes) != 1 || notes[0] != s.Clusters[0].Unrevoked() {
		t.Errorf("notes of one cluster: %q", notes)
	}
}
