package hub

import (
	"slices"
	"testing"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// TestResumeAfterAKillAheadOfTheCommit: the shards say that the action of the manager is
// finished, and the status is of before. Nothing else would call for the action again.
func TestResumeAfterAKillAheadOfTheCommit(t *testing.T) {
	r := newRun(t, "c1", "c2")
	r.step(Start{At: r.now})
	for _, phase := range []api.Phase{api.PhaseValidating, api.PhaseInitializing} {
		r.until(phase)
		before := r.state
		e := Due(before)[0]
		if e.Party != Manager {
			t.Fatalf("phase %s begins with %s", phase, e.Key)
		}
		after := Step(before, Report{At: r.now, Party: Manager, Stage: e.Stage, Attempt: e.Attempt, Finished: true})
		spec := api.ManagedClusterMigrationSpec{IncludedManagedClusters: []api.ClusterName{"c1", "c2"}}
		torn, err := Restore(spec, before.Phase, before.Progress(1), []map[string]string{after.Shards("m")[0].Data})
		if err != nil {
			t.Fatal(err)
		}
		if due := Due(torn); len(due) != 0 {
			t.Fatalf("phase %s: without the event, %v is due", phase, due)
		}
		if due := Due(Step(torn, Resume{At: r.now})); len(due) != 1 || due[0].Key != e.Key {
			t.Errorf("phase %s: after the event %v is due, want %s", phase, due, e.Key)
		}
		if again := Step(after, Resume{At: r.now}); len(Due(again)) != len(Due(after)) || again.Attempt != after.Attempt {
			t.Errorf("phase %s: the event changes a state that was committed", phase)
		}
		r.state = after
	}
}

// TestContinueDoesNotCountThePause: each command without a final report is due again, and the phase has as much time left as before.
func TestContinueDoesNotCountThePause(t *testing.T) {
	r := newRun(t, "c1", "c2")
	r.step(Start{At: r.now})
	for _, phase := range []api.Phase{api.PhaseDeploying, api.PhaseRegistering} {
		r.until(phase)
		before := r.state
		for _, e := range Due(before) {
			before = Step(before, Sent{At: r.now, Key: e.Key})
		}
		if due := Due(before); len(due) > 0 {
			t.Fatalf("phase %s: %v is due after it was sent", phase, due)
		}
		const pause = 12 * time.Hour
		after := Step(before, Continue{At: r.now.Add(pause), Paused: pause})
		deadline, _ := Deadline(before)
		if later, _ := Deadline(after); !later.Equal(deadline.Add(pause)) {
			t.Errorf("phase %s: the deadline is %s, and before the pause of %s it was %s", phase, later, pause, deadline)
		}
		unfinished := 0
		for _, p := range before.parties() {
			if c, ok := CommandFor(before, p); ok && p != Manager && !before.Record(p).Finished {
				unfinished++
				if !slices.ContainsFunc(Due(after), func(e Effect) bool { return e.Party == p && e.Attempt == c.Attempt }) {
					t.Errorf("phase %s: the command of %s is not due again", phase, p)
				}
			}
		}
		if unfinished == 0 {
			t.Errorf("phase %s has no command under way", phase)
		}
	}
}
