package hub

import (
	"testing"

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
