package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// killEverything kills the agents, the broker and the manager by SIGKILL, one after another, and starts each of them again. It
// reports whether it did so in a phase: the manager, which alone changes the phase, is frozen first.
func (m *migration) killEverything(phase api.Phase) bool {
	m.t.Helper()
	manager := m.in.manager.process
	if err := manager.Pause(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	if m.read().Status.Phase != phase {
		if err := manager.Continue(); err != nil {
			m.t.Fatal(err)
		}
		return false
	}
	m.in.source.kill(m.t)
	m.in.target.kill(m.t)
	if err := m.in.broker.Kill(); err != nil {
		m.t.Fatal(err)
	}
	if err := m.in.broker.Restart(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	m.in.manager.kill(m.t)
	return true
}

// killIn kills everything in phases, the first time that each is seen, until the migration ends. It returns the phases that were
// over before everything was killed.
func (m *migration) killIn(phases []api.Phase, end api.Phase) (missed []api.Phase) {
	m.t.Helper()
	missed = slices.Clone(phases)
	tried := map[api.Phase]bool{}
	began := time.Now()
	ctx, cancel := context.WithTimeout(m.t.Context(), 2*patience)
	defer cancel()
	for {
		status := m.read().Status
		phase := status.Phase
		if phase == end && status.CompletionTime != nil {
			m.t.Logf("%s, killed in all of %v but %v: %.1f s", end, phases, missed, time.Since(began).Seconds())
			return missed
		}
		if slices.Contains(missed, phase) && !tried[phase] {
			tried[phase] = true
			if m.killEverything(phase) {
				missed = slices.DeleteFunc(missed, func(p api.Phase) bool { return p == phase })
			}
		}
		select {
		case <-ctx.Done():
			m.t.Fatalf("migration %s has not ended in %s: %s", m.object.Name, end, m.describe())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestKilled kills everything in each phase of a migration. A phase that was over too soon is met in another migration.
//
// Matrix: H32, H33, H35.
func TestKilled(t *testing.T) {
	t.Parallel() // to TestUnreachable, whose migration waits
	in := install(t)
	t.Run("Forward", func(t *testing.T) { killedForward(t, in) })
	t.Run("Rollback", func(t *testing.T) { killedInRollback(t, in) })
}

// killedForward completes.
func killedForward(t *testing.T, in *installation) {
	left := []api.Phase{api.PhaseValidating, api.PhaseInitializing, api.PhaseDeploying, api.PhaseRegistering, api.PhaseCleaning}
	for attempt := 1; len(left) > 0; attempt++ {
		if attempt > 3 {
			t.Fatalf("%v are over before the test has frozen the manager, in three migrations", left)
		}
		name := fmt.Sprintf("killed-%d", attempt)
		c := importSites(t, in.fleet, name)[0]
		before := onHub(t, in.hub1, name)
		source, target := layTripwire(t, in.hub1, name), layTripwire(t, in.hub2, name)
		m := in.migrate(t, name, nil, name)
		left = m.killIn(left, api.PhaseCompleted)
		m.mustHave(api.ConditionReady, metav1.ConditionTrue, nil)
		awaitRegistered(t, in.hub2, name)
		mustHaveMoved(t, in.fleet, before, c)
		source.mustBeIntact(t, name)
		target.mustBeIntact(t, name)
	}
}

// killedInRollback is back at hub1.
func killedInRollback(t *testing.T, in *installation) {
	for attempt := 1; ; attempt++ {
		if attempt > 3 {
			t.Fatal("Rollbacking is over before the test has frozen the manager, in three migrations")
		}
		name := fmt.Sprintf("killed-back-%d", attempt)
		importSites(t, in.fleet, name)
		before := onHub(t, in.hub1, name)
		source, target := layTripwire(t, in.hub1, name), layTripwire(t, in.hub2, name)
		m := in.migrate(t, name, nil, name)
		m.mustReach(api.PhaseRegistering)
		m.abort()
		missed := m.killIn([]api.Phase{api.PhaseRollbacking}, api.PhaseFailed)
		m.mustHave(api.ConditionReady, metav1.ConditionFalse, api.ReasonAborted)
		m.mustHave(api.ConditionRolledBack, metav1.ConditionTrue, api.ReasonSucceeded)
		awaitRegistered(t, in.hub1, name)
		mustBeBack(t, in.fleet, before, name)
		source.mustBeIntact(t, name)
		target.mustBeIntact(t)
		if len(missed) == 0 {
			return
		}
	}
}

// abort asks for the rollback, as a user does.
func (m *migration) abort() {
	m.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+api.RequestAnnotation+`":"`+api.RequestRollback+`"}}}`))
	if err := m.in.global.Patch(m.t.Context(), m.object.DeepCopy(), patch); err != nil {
		m.t.Fatal(err)
	}
}
