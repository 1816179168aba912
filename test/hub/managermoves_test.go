package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// TestManagerMovesClusters: from the creation to the end, with the kubeconfig sealed from
// hub to hub.
//
// Matrix: H60.
func TestManagerMovesClusters(t *testing.T) {
	t.Parallel()
	g := newGlobalHub(t)
	key := g.migrate("move", "c1", "c2", "c3")
	p := g.start(nil, key)
	defer p.stop()
	began := time.Now()
	m := g.await(key, "the clusters have moved", settled)
	t.Logf("%s", time.Since(began))
	g.mustBeMoved(m)
	want := []string{"ValidateSource", "InstallBootstrap", "SendResources", "ReleaseClusters", "DeleteMoved"}
	if got := slices.DeleteFunc(g.from.executed(), func(a string) bool { return !slices.Contains(want, a) }); !slices.Equal(got, want) {
		t.Errorf("the source was told %v, want %v", got, want)
	}
}

// TestManagerKilledBetweenSteps kills the manager after every sixth write or send, from
// another one on in each run, so that together every step is the last one of some manager.
// The end is as without a kill, and no agent is told anything else.
//
// Matrix: H32.
func TestManagerKilledBetweenSteps(t *testing.T) {
	t.Parallel()
	const interval = 6
	g := newGlobalHub(t)
	key := g.migrate("move", "c1", "c2")
	p := g.start(nil, key)
	g.mustBeMoved(g.await(key, "the clusters have moved", settled))
	p.stop()
	source, target := g.from.executed(), g.to.executed()
	for first := range interval {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			t.Parallel()
			g := newGlobalHub(t)
			key := g.migrate("move", "c1", "c2")
			kills := 0
			for ; !settled(g.read(key)); kills++ {
				v := &valve{}
				v.left.Store(interval)
				if kills == 0 {
					v.left.Store(int32(first + 1))
				}
				p := g.start(v, key)
				deadline := time.Now().Add(patience)
				for v.left.Load() > 0 && !settled(g.read(key)) {
					if time.Now().After(deadline) {
						t.Fatalf("a manager that may do %d steps does nothing: %s", v.left.Load(), describe(g.read(key)))
					}
					pause(t.Context(), 20*time.Millisecond)
				}
				p.stop()
			}
			p := g.start(nil, key)
			defer p.stop()
			g.mustBeMoved(g.read(key))
			if kills < 10 {
				t.Errorf("the manager was killed %d times", kills)
			}
			if got := g.from.executed(); !slices.Equal(got, source) {
				t.Errorf("the source executed %v, and without a kill %v", got, source)
			}
			if got := g.to.executed(); !slices.Equal(got, target) {
				t.Errorf("the target executed %v, and without a kill %v", got, target)
			}
		})
	}
}

// TestManagerAborts by the annotation and by a deletion, both while the target waits for
// registrations: every cluster is restored.
//
// Matrix: H14, H15.
func TestManagerAborts(t *testing.T) {
	t.Parallel()
	for name, abort := range map[string]func(*globalHub, *api.ManagedClusterMigration) error{
		"Annotation": func(g *globalHub, m *api.ManagedClusterMigration) error {
			before := m.DeepCopy()
			m.Annotations = map[string]string{api.RequestAnnotation: api.RequestRollback}
			return g.c.Patch(g.t.Context(), m, client.MergeFrom(before))
		},
		"Deletion": func(g *globalHub, m *api.ManagedClusterMigration) error { return g.c.Delete(g.t.Context(), m) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGlobalHub(t)
			held, release := g.to.hold(hub.AwaitRegistration)
			defer release()
			returning, finish := g.from.hold(hub.AwaitReturn)
			defer finish()
			key := g.migrate("move", "c1", "c2")
			p := g.start(nil, key)
			defer p.stop()
			<-held
			m := g.read(key)
			if err := abort(g, m); err != nil {
				t.Fatal(err)
			}
			<-returning // the rollback has begun
			release()
			finish()
			deadline := time.Now().Add(patience)
			for {
				err := g.c.Get(t.Context(), key, m)
				if apierrors.IsNotFound(err) && name == "Deletion" || err == nil && settled(m) && name != "Deletion" {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%v, phase %s:\n%s", err, m.Status.Phase, describe(m))
				}
				pause(t.Context(), awaitEvery)
			}
			if name == "Annotation" {
				if m.Status.Phase != api.PhaseFailed || m.Status.Counts.Restored != 2 || m.Status.Progress.Reason != api.ReasonAborted.Name || m.Annotations[api.RequestAnnotation] != "" {
					t.Errorf("phase %s, counts %+v, annotations %v:\n%s", m.Status.Phase, m.Status.Counts, m.Annotations, describe(m))
				}
			}
			g.awaitNoKeys(m)
			told := append(g.from.executed(), g.to.executed()...)
			for _, action := range []hub.Action{hub.RestoreAcceptance, hub.RevertBootstrap, hub.StopAccepting, hub.DeleteCreated, hub.RevokeRegistration} {
				if !slices.Contains(told, string(action)) {
					t.Errorf("no hub was told %s: %v", action, told)
				}
			}
		})
	}
}

// TestManagerMigratesInParallel: of three migrations two have no cluster in common and run
// together. The third waits for the first, which it names.
//
// Matrix: H12.
func TestManagerMigratesInParallel(t *testing.T) {
	t.Parallel()
	g := newGlobalHub(t)
	held, release := g.from.hold(hub.SendResources)
	defer release()
	first := g.migrate("first", "c1", "c2")
	p := g.start(nil, first, objectKey{Namespace: g.namespace, Name: "beside"}, objectKey{Namespace: g.namespace, Name: "later"})
	defer p.stop()
	<-held
	later, beside := g.migrate("later", "c2", "c3"), g.migrate("beside", "c4")
	m := g.await(later, "the later one waits", func(m *api.ManagedClusterMigration) bool {
		return m.Status.Progress != nil && m.Status.Progress.WaitingFor != ""
	})
	c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionReconciling)
	if m.Status.Phase != api.PhasePending || c.Reason != api.ReasonWaiting.Name || !strings.Contains(c.Message, first.String()) {
		t.Errorf("phase %s:\n%s", m.Status.Phase, describe(m))
	}
	g.await(beside, "the other one runs", func(m *api.ManagedClusterMigration) bool { return m.Status.Phase == api.PhaseDeploying })
	if phase := g.read(first).Status.Phase; phase != api.PhaseDeploying {
		t.Errorf("the first one is in phase %s", phase)
	}
	release()
	for _, key := range []objectKey{first, beside, later} {
		g.mustBeMoved(g.await(key, "the clusters have moved", settled))
	}
}

// TestManagerSaysThatItsStateIsLost: it does nothing more until a user restores it.
func TestManagerSaysThatItsStateIsLost(t *testing.T) {
	t.Parallel()
	g, key, release := killedInInstall(t)
	defer release()
	state := g.loseState(key)
	p := g.start(nil, key)
	defer p.stop()
	g.await(key, "the manager says so", func(m *api.ManagedClusterMigration) bool {
		c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == api.ReasonStateLost.Name
	})
	state.ResourceVersion, state.UID = "", ""
	if err := g.c.Create(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	release()
	g.mustBeMoved(g.await(key, "the clusters have moved", settled))
}

// killedInInstall is a migration whose manager was killed while the source hub executes InstallBootstrap, which release ends. A manager that
// runs would write what it has just read.
func killedInInstall(t *testing.T) (g *globalHub, key objectKey, release func()) {
	t.Helper()
	g = newGlobalHub(t)
	held, release := g.from.hold(hub.InstallBootstrap)
	key = g.migrate("move", "c1")
	p := g.start(nil, key)
	<-held
	p.stop()
	return g, key, release
}

// loseState deletes the ConfigMap with the state of a migration of one cluster, and returns it.
func (g *globalHub) loseState(key objectKey) *corev1.ConfigMap {
	g.t.Helper()
	state := &corev1.ConfigMap{}
	if err := g.c.Get(g.t.Context(), objectKey{Namespace: key.Namespace, Name: key.Name + "-state-0"}, state); err != nil {
		g.t.Fatal(err)
	}
	if err := g.c.Delete(g.t.Context(), state); err != nil {
		g.t.Fatal(err)
	}
	return state
}

// TestDeletionEndsWithoutState: the state of a deleted migration is lost, as in a namespace that is being deleted. Its finalizer
// goes, and an event says how to find what is left.
//
// Matrix: H86.
func TestDeletionEndsWithoutState(t *testing.T) {
	t.Parallel()
	g, key, release := killedInInstall(t)
	defer release()
	g.loseState(key)
	if err := g.c.Delete(t.Context(), g.read(key)); err != nil {
		t.Fatal(err)
	}
	p := g.start(nil, key)
	defer p.stop()
	g.awaitGone(key)
	g.mustAnnounce(corev1.EventTypeWarning, api.ReasonLeftBehind)
}
