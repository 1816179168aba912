package crdmigrator_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// queuedWrites is the number of ordinary writes that wait in the stopped server.
const queuedWrites = 100

// TestStoppedServerCannotPutObjectsBack: an API server is stopped before the
// storage version changes, with writes queued in it. When it continues, it finishes them
// at the old version, before it notices the change. The migration must have waited for
// it.
func TestStoppedServerCannotPutObjectsBack(t *testing.T) {
	t.Parallel()
	s := stopServerAcrossFlip(t)
	m := newMigrator(t, s.config, storageversion.Options{Policy: decision.Policy{Settle: 5 * time.Second}})
	plan, err := m.Plan(t.Context(), s.name)
	if err != nil {
		t.Fatal(err)
	}

	// While the server is stopped, every run is refused, and after a while the
	// error names its stale lease.
	notSettled := s.awaitStaleLease(m, plan)
	if len(notSettled.Stale) != 1 || notSettled.Stale[0].Name != s.second.Identity() {
		t.Fatalf("the run waits for %v, want the stopped server %s", notSettled.Stale, s.second.Identity())
	}
	s.mustBeStored("while waiting nothing is written", map[string]int{"v1": queuedWrites})

	// Another process has only planned, and waits for its user's confirmation.
	asking := newMigrator(t, s.config, storageversion.Options{Policy: decision.Policy{Settle: 5 * time.Second}})
	seen := s.planWhileStale(asking)

	// The server comes back and writes objects at the old version.
	s.resume()
	s.mustBeStored("the queued writes were stored at the old version", map[string]int{"v1": queuedWrites})

	// A process that saw the lease stale does not trust the fresh one.
	if _, err := asking.Run(t.Context(), seen, nil); !errors.As(err, &notSettled) {
		t.Errorf("a run planned while the lease was stale: %v, want NotSettledError", err)
	}

	// In spite of its fresh lease, the server now gets the settle time.
	back := time.Now()
	for err = error(notSettled); errors.As(err, &notSettled); _, err = m.Run(t.Context(), plan, nil) {
		if time.Since(back) > awaitLimit {
			t.Fatalf("%v after the server came back: %v", awaitLimit, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.mustBeStored("in the end", map[string]int{"v2": queuedWrites})
	s.mustHaveStoredVersions("in the end", "v2")
}

// TestAcceptedStaleLeasePutsObjectsBack shows the purpose of the wait: with the stale lease
// accepted, every queued object ends at the old version in etcd, although storedVersions
// does not list it.
func TestAcceptedStaleLeasePutsObjectsBack(t *testing.T) {
	t.Parallel()
	s := stopServerAcrossFlip(t)
	policy := decision.Policy{Settle: -1, AcceptStaleLeases: true}
	report := s.mustMigrate(newMigrator(t, s.config, storageversion.Options{Policy: policy}))
	if report.Storage.Counts.Migrated != queuedWrites || !report.Trimmed {
		t.Fatalf("the run that accepts the stale lease: %+v", report)
	}
	s.mustBeStored("before the server is back", map[string]int{"v2": queuedWrites})

	s.resume()
	s.mustBeStored("the stopped server wrote every object at the old version", map[string]int{"v1": queuedWrites})
	s.mustHaveStoredVersions("no API shows the old version", "v2")
}

// stoppedServer is a control plane whose second server is stopped with writes under way,
// and whose storage version has changed through the first server.
type stoppedServer struct {
	*widgets
	second *controlplane.APIServer
	gate   *admissionGate
	writes sync.WaitGroup
	errs   [queuedWrites]error
}

func stopServerAcrossFlip(t *testing.T) *stoppedServer {
	t.Helper()
	plane := controlplane.Options{}.StartFor(t)
	s := &stoppedServer{widgets: newWidgets(t, plane)}
	// Both servers serve v2 before it is stored, as after a careful roll-out: a
	// server without v2 could not read the objects of the other.
	s.setVersions(version("v1", true, true), version("v2", true, false))
	s.fill("v1", queuedWrites)
	var err error
	if s.second, err = plane.StartSecond(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	if err := controlplane.AwaitServed(t.Context(), s.second.Config(), s.name); err != nil {
		t.Fatal(err)
	}
	s.queueWrites()
	s.flip()
	return s
}

// queueWrites sends one ordinary write per object to the second server, and stops the
// server while admission handles them. The server will finish them with the handler that
// stores v1.
func (s *stoppedServer) queueWrites() {
	s.t.Helper()
	s.gate = s.newAdmissionGate()
	s.gate.awaitInstalled(s.second.Config(), "w-0000")
	config := s.second.Config()
	config.Timeout = 5 * time.Minute
	objects := s.through(config, "v1")
	for i := range queuedWrites {
		s.writes.Go(func() {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"yes"}},"spec":{"color":"color-%d"}}`, heldLabel, i)
			_, s.errs[i] = objects.Patch(context.WithoutCancel(s.t.Context()), fmt.Sprintf("w-%04d", i), types.MergePatchType, patch, metav1.PatchOptions{})
		})
	}
	s.gate.awaitHeld(queuedWrites)
	if err := s.second.Pause(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// resume continues the server and waits until it has answered every write.
func (s *stoppedServer) resume() {
	s.t.Helper()
	s.gate.open()
	if err := s.second.Continue(); err != nil {
		s.t.Fatal(err)
	}
	s.writes.Wait()
	if err := errors.Join(s.errs[:]...); err != nil {
		s.t.Fatal(err)
	}
}

// planWhileStale plans until the plan names a stale lease: the clocks of two processes
// differ by up to a second.
func (s *stoppedServer) planWhileStale(m *storageversion.Migrator) (plan decision.Plan) {
	s.t.Helper()
	await(s.t, "the plan to be blocked by the stale lease", func() bool {
		facts, err := m.Observe(s.t.Context(), s.name)
		if err != nil {
			s.t.Fatal(err)
		}
		plan = decision.PlanFor(facts, decision.Policy{Settle: 5 * time.Second})
		return len(plan.Blockers) == 1 && plan.Blockers[0].Reason == decision.ReasonServerLeaseStale
	})
	return plan
}

// awaitStaleLease runs the plan again and again until the error names a stale lease.
func (s *stoppedServer) awaitStaleLease(m *storageversion.Migrator, plan decision.Plan) (notSettled *decision.NotSettledError) {
	s.t.Helper()
	await(s.t, "a lease to be stale", func() bool {
		if _, err := m.Run(s.t.Context(), plan, nil); !errors.As(err, &notSettled) {
			s.t.Fatalf("run beside a stopped server: %v, want NotSettledError", err)
		}
		return len(notSettled.Stale) > 0
	})
	return notSettled
}
