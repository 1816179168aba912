package hub

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// run is a migration of which a test plays all parties.
type run struct {
	t     *testing.T
	state State
	now   time.Time
	// refused is why the broker refuses the commands to a party.
	refused map[Party]string
}

// epoch is when the tests begin.
var epoch = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func newRun(t *testing.T, clusters ...string) *run {
	spec := api.ManagedClusterMigrationSpec{From: "hub1", To: "hub2"}
	for _, name := range clusters {
		spec.IncludedManagedClusters = append(spec.IncludedManagedClusters, api.ClusterName(name))
	}
	return &run{t: t, state: New(spec), now: epoch}
}

func (r *run) step(e Event) { r.state = Step(r.state, e) }

// report answers the present command to a party.
func (r *run) report(p Party, change func(*Report)) {
	present := r.state.Record(p)
	e := Report{At: r.now, Party: p, Stage: present.Stage, Attempt: present.Attempt, Finished: true}
	change(&e)
	r.step(e)
}

// answer finishes what a party was told, for all clusters.
func (r *run) answer(p Party) {
	r.t.Helper()
	command, ok := CommandFor(r.state, p)
	if !ok {
		r.t.Fatalf("nothing is asked of %s in %s turn %d", p, r.state.Phase, r.state.Turn)
	}
	r.report(p, func(e *Report) {
		for _, order := range command.Orders {
			e.Done = append(e.Done, order.Clusters...)
		}
	})
}

func (r *run) fail(p Party, message string) {
	r.t.Helper()
	r.report(p, func(e *Report) { e.Error = Failure{Message: message} })
}

// until answers everything until a phase is reached.
func (r *run) until(phase api.Phase) {
	r.t.Helper()
	if r.state.Phase == api.PhasePending {
		r.step(Start{At: r.now})
	}
	for range 100 {
		if r.state.Phase == phase {
			return
		}
		for _, e := range Due(r.state) {
			r.answer(e.Party)
			break
		}
	}
	r.t.Fatalf("phase is %s, want %s", r.state.Phase, phase)
}

// send marks the commands that are due as sent, or as refused, and describes all that is due.
func (r *run) send() string {
	var b strings.Builder
	for _, e := range Due(r.state) {
		if e.Party == Manager {
			fmt.Fprintf(&b, "do %s\n", orders(e.Orders))
			continue
		}
		if why := r.refused[e.Party]; why != "" {
			fmt.Fprintf(&b, "refused %s to %s: %s\n", e.Key, string(e.Party), why)
			r.step(Unsent{At: r.now, Key: e.Key, Message: why})
			continue
		}
		fmt.Fprintf(&b, "send %s to %s: %s\n", e.Key, string(e.Party), orders(e.Orders))
		r.step(Sent{At: r.now, Key: e.Key})
	}
	return b.String()
}

func orders(list []Order) string {
	if len(list) == 0 {
		return "nothing more"
	}
	texts := make([]string, len(list))
	for i, o := range list {
		texts[i] = string(o.Action)
		if len(o.Clusters) > 0 {
			texts[i] += "(" + strings.Join(o.Clusters, " ") + ")"
		}
	}
	return strings.Join(texts, ", ")
}

// describe is what a script shows after a command.
func (r *run) describe() string {
	var b strings.Builder
	s := r.state
	fmt.Fprintf(&b, "%s", s.Phase)
	if s.Reason != "" {
		fmt.Fprintf(&b, ", %s", s.Reason)
	}
	if s.WaitingFor != "" {
		fmt.Fprintf(&b, ", waits for %s", s.WaitingFor)
	}
	if deadline, ok := Deadline(s); ok {
		fmt.Fprintf(&b, ", next tick in %s", deadline.Sub(r.now))
	}
	if s.Settled() {
		b.WriteString(", settled")
	}
	if s.Abandoned {
		b.WriteString(", abandoned")
	}
	b.WriteString("\n")
	if s.Message != "" && s.Phase != api.PhaseCleaning {
		fmt.Fprintf(&b, "message: %s\n", s.Message)
	}
	if slices.ContainsFunc(s.Clusters, func(c Cluster) bool { return c.State != Selected || c.Failure != (Failure{}) }) {
		for _, c := range s.Clusters {
			fmt.Fprintf(&b, "cluster %s: %s", c.Name, c.State)
			if place := s.PlaceOf(c); place != "" {
				fmt.Fprintf(&b, ", %s", place)
			}
			if c.Failure != (Failure{}) {
				fmt.Fprintf(&b, " (%s: %s)", c.FailedIn, c.Failure)
			}
			if c.Note != "" {
				fmt.Fprintf(&b, " (%s)", c.Note)
			}
			b.WriteString("\n")
		}
	}
	b.WriteString(r.send())
	return b.String()
}

// conditions are what the status shows.
func (r *run) conditions() string {
	var b strings.Builder
	c := r.state.Counts()
	fmt.Fprintf(&b, "%s: total %d, moved %d, failed %d, restored %d", r.state.Phase, c.Total, c.Moved, c.Failed, c.Restored)
	if c.Gone+c.Forgotten > 0 {
		fmt.Fprintf(&b, ", gone %d, forgotten %d", c.Gone, c.Forgotten)
	}
	b.WriteString("\n")
	for _, p := range r.state.Places() {
		fmt.Fprintf(&b, "at %s of the %s: %d\n", p.Place, p.Hub, p.Clusters)
	}
	for _, c := range r.state.Conditions() {
		fmt.Fprintf(&b, "%s=%s %s %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	if what := r.state.LeftBehind(); what != "" {
		fmt.Fprintf(&b, "left behind: %s\n", what)
	}
	for _, f := range r.state.Failures() {
		fmt.Fprintf(&b, "failure: %s in %s: %s\n", f.Cluster, f.Phase, f.Message)
	}
	return b.String()
}
