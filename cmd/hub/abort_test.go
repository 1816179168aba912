package hub

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// TestLostTarget: at any moment of a migration the target hub is lost, and a user ends the migration without it. It ends without an answer of
// the target, with or without one cluster that is offline. What still knows the source hub is returned, and what is left is named.
//
// Matrix: H128.
func TestLostTarget(t *testing.T) {
	ends := map[ClusterState]int{}
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(1, seed))
		r := newRun(t, "c1", "c2", "c3")
		r.step(Start{At: r.now})
		for range random.IntN(25) {
			r.randomly(random)
		}
		before := r.state
		silent := random.IntN(3) == 0
		for range 200 {
			if r.state.Settled() {
				break
			}
			if r.state.NeedsLose() {
				r.step(Lose{At: r.now})
			}
			r.withoutTarget(silent)
		}
		if !r.state.Settled() {
			t.Fatalf("seed %d: the migration does not end: %s", seed, r.describe())
		}
		if r.state.Abandoned && !silent {
			t.Errorf("seed %d: the migration has waited for its time, and every cluster has answered", seed)
		}
		left, notes := r.state.LeftBehind(), strings.Join(r.state.NotesOfLeft(), "\n")
		for i, c := range r.state.Clusters {
			ends[c.State]++
			was := before.Clusters[i].State
			switch {
			case !c.HasEnded() && before.Phase != api.PhasePending && r.state.Stage != "" && (!r.state.Abandoned || !strings.Contains(notes, c.Name)):
				t.Errorf("seed %d: %s is %s in the end, and %q does not name it", seed, c.Name, c.State, notes)
			case was == Registered && before.Clusters[i].Turn == len(moving)-1 && c.State != Forgotten && c.State != Moved:
				t.Errorf("seed %d: the klusterlet of %s knew the target hub alone, and it is %s in the end", seed, c.Name, c.State)
			case was != Registered && c.State == Forgotten:
				t.Errorf("seed %d: %s was %s, and is not returned", seed, c.Name, was)
			case c.Note != "" && !strings.Contains(notes, c.Name), c.State == Forgotten && left == "":
				t.Errorf("seed %d: %q does not name %s, which has the note %q", seed, left, c.Name, c.Note)
			}
		}
		if len(left) > 0 && (before.Phase == api.PhasePending || before.Phase == api.PhaseValidating) {
			t.Errorf("seed %d: left %q, and in %s nothing was changed", seed, left, before.Phase)
		}
		if len(left) > 0 && !r.state.TargetLost && before.Phase != api.PhaseCompleted {
			t.Errorf("seed %d: left %q, and the target was not lost", seed, left)
		}
	}
	for _, s := range []ClusterState{Moved, Restored, Forgotten, Returning} {
		if ends[s] < 50 {
			t.Errorf("%d clusters ended %s: the test reaches too little", ends[s], s)
		}
	}
}

// randomly has one party answer for some clusters, or a user abort.
func (r *run) randomly(random *rand.Rand) {
	r.send()
	for _, p := range []Party{Manager, Source, Target} {
		command, ok := CommandFor(r.state, p)
		if !ok || r.state.Record(p).Finished || random.IntN(2) == 0 {
			continue
		}
		r.report(p, func(e *Report) {
			e.Finished = random.IntN(3) > 0 || !r.state.walks()
			for _, order := range command.Orders {
				for _, name := range order.Clusters {
					if e.Finished || random.IntN(2) == 0 {
						e.Done = append(e.Done, name)
					}
				}
			}
		})
	}
	if random.IntN(15) == 0 {
		r.step(Rollback{At: r.now})
	}
}

// withoutTarget has the source and the manager answer, and lets time pass. A silent cluster is c1.
func (r *run) withoutTarget(silent bool) {
	r.send()
	for _, p := range []Party{Source, Manager} {
		command, ok := CommandFor(r.state, p)
		if !ok || r.state.Record(p).Finished {
			continue
		}
		r.report(p, func(e *Report) {
			e.Finished = !silent || !r.state.walks()
			for _, order := range command.Orders {
				for _, name := range order.Clusters {
					if !silent || name != "c1" {
						e.Done = append(e.Done, name)
					}
				}
			}
		})
	}
	r.now = r.now.Add(time.Minute)
	r.step(Tick{At: r.now})
}

// TestNotesOfLeft: all clusters are named, in notes that an event has room for.
func TestNotesOfLeft(t *testing.T) {
	s := State{Phase: api.PhaseFailed, Stage: api.PhaseRollbacking, Abandoned: true, RollbackStage: api.PhaseRegistering}
	for i := range 45 {
		s.Clusters = append(s.Clusters, Cluster{Name: strings.Repeat("x", 60) + string(rune('a'+i/26)) + string(rune('a'+i%26)), State: Returning})
	}
	notes := s.NotesOfLeft()
	all := strings.Join(notes, "\n")
	for _, c := range s.Clusters {
		if strings.Count(all, c.Name) != 1 {
			t.Errorf("the notes name %s %d times", c.Name, strings.Count(all, c.Name))
		}
	}
	for _, note := range notes {
		if len(note) > maxNote || strings.Count(note, "xxx") == 0 && strings.Contains(note, ", for ") {
			t.Errorf("a note of %d bytes: %s", len(note), note)
		}
	}
	if !strings.Contains(s.LeftBehind(), " and others") {
		t.Errorf("the text for the status is %s", s.LeftBehind())
	}
	// What the status has for a cluster fits into status.failures.
	for _, c := range []Cluster{{State: Returning}, {State: Selected}, {State: Registered, Turn: 2}} {
		s := State{Phase: api.PhaseCleaning, Stage: api.PhaseCleaning, Clusters: []Cluster{c}}
		if text := s.Leaves(c); len(text) > 512 {
			t.Errorf("%s: %d bytes for a failure, which may have 512: %s", c.State, len(text), text)
		}
	}
}
