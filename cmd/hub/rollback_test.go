package hub

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// rollbackStages in their order. Each rollback includes those before it.
var rollbackStages = []api.Phase{api.PhaseInitializing, api.PhaseDeploying, api.PhaseRegistering}

// TestRollback shows for each hub and each stage in which a migration fails what the hub is
// told, in this order.
//
// Matrix: H69.
func TestRollback(t *testing.T) {
	want := map[Party]map[api.Phase]string{
		Source: {
			api.PhaseInitializing: "RevertBootstrap(c1 c2)",
			api.PhaseDeploying:    "RemovePauses(c1 c2), RevertBootstrap(c1 c2), AwaitReturn(c1 c2)",
			api.PhaseRegistering:  "RestoreAcceptance(c1 c2); RemovePauses(c1 c2), RevertBootstrap(c1 c2), AwaitReturn(c1 c2)",
		},
		Target: {
			api.PhaseInitializing: "RevokeRegistration",
			api.PhaseDeploying:    "DeleteCreated(c1 c2); RevokeRegistration",
			api.PhaseRegistering:  "StopAccepting(c1 c2); StopAccepting(c1 c2), DeleteCreated(c1 c2); RevokeRegistration",
		},
	}
	for _, stage := range rollbackStages {
		got := rolledBack(t, stage)
		for _, hub := range parties {
			t.Run(string(hub)+" "+string(stage), func(t *testing.T) {
				if diff := cmp.Diff(want[hub][stage], strings.Join(got[hub], "; ")); diff != "" {
					t.Errorf("rollback of %s on the %s (-want +got):\n%s", stage, hub, diff)
				}
			})
		}
	}
}

// TestRollbackOrder: the whole order of the last rollback is the one that real agents need.
//
// Matrix: H73.
func TestRollbackOrder(t *testing.T) {
	var got []string
	r := newRun(t, "c1")
	r.until(api.PhaseRegistering)
	r.step(Rollback{At: r.now})
	for r.state.Phase == api.PhaseRollbacking {
		e := Due(r.state)[0]
		for _, o := range e.Orders {
			got = append(got, string(e.Party)+" "+string(o.Action))
		}
		r.answer(e.Party)
	}
	want := []string{
		"source RestoreAcceptance", "target StopAccepting", "source RemovePauses", "source RevertBootstrap", "source AwaitReturn",
		"target StopAccepting", "target DeleteCreated", "target RevokeRegistration", "manager RevokeBootstrap",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rollback (-want +got):\n%s", diff)
	}
}

// TestRollbackIncludesLower: what a rollback does, the one of a later stage does as well.
//
// Matrix: H69.
func TestRollbackIncludesLower(t *testing.T) {
	for _, hub := range parties {
		var before []Action
		for _, stage := range rollbackStages {
			var actions []Action
			for _, turn := range append(slices.Clone(returning[stage]), closing...) {
				for _, task := range turn {
					if task.party == hub {
						actions = append(actions, task.actions...)
					}
				}
			}
			for _, a := range before {
				if !slices.Contains(actions, a) {
					t.Errorf("the rollback of %s on the %s lacks %s", stage, hub, a)
				}
			}
			before = actions
		}
	}
}

// rolledBack returns what each hub is told when a migration fails in a stage.
func rolledBack(t *testing.T, stage api.Phase) map[Party][]string {
	t.Helper()
	r := newRun(t, "c1", "c2")
	r.until(stage)
	r.step(Rollback{At: r.now})
	told := map[Party][]string{}
	for r.state.Phase == api.PhaseRollbacking {
		e := Due(r.state)[0]
		told[e.Party] = append(told[e.Party], orders(e.Orders))
		r.answer(e.Party)
	}
	if !r.state.Settled() || r.state.hasClusterIn(Selected, Registered, Moved, Returning, Returned) {
		t.Errorf("after the rollback of %s the phase is %s, and clusters are %v", stage, r.state.Phase, r.state.Clusters)
	}
	return told
}
