package hub_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// configMap reads a ConfigMap of a migration.
func (g *globalHub) configMap(key objectKey, suffix string) *corev1.ConfigMap {
	g.t.Helper()
	o := &corev1.ConfigMap{}
	if err := g.c.Get(g.t.Context(), objectKey{Namespace: key.Namespace, Name: key.Name + suffix}, o); err != nil {
		g.t.Fatal(err)
	}
	return o
}

func (g *globalHub) update(o client.Object) {
	g.t.Helper()
	if err := g.c.Update(g.t.Context(), o); err != nil {
		g.t.Fatal(err)
	}
}

// change changes a ConfigMap of a migration, between two writes of the manager.
func (g *globalHub) change(key objectKey, suffix string, change func(*corev1.ConfigMap)) {
	g.t.Helper()
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		cm := g.quiet(key, suffix)
		change(cm)
		return g.c.Update(g.t.Context(), cm)
	}); err != nil {
		g.t.Fatal(err)
	}
}

// quiet returns a ConfigMap of a migration that the manager has not written for a second.
func (g *globalHub) quiet(key objectKey, suffix string) *corev1.ConfigMap {
	g.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		before := g.configMap(key, suffix)
		pause(g.t.Context(), time.Second)
		if after := g.configMap(key, suffix); after.ResourceVersion == before.ResourceVersion {
			return after
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("ConfigMap %s changes all the time", before.Name)
		}
	}
}

// TestSwappedKey: a user who may write ConfigMaps in the namespace of a migration puts a key of its own in place of the source's. The bootstrap
// kubeconfig is not sealed to it, and an event says why. The migration fails before it changes a hub, unless it needs the key no more.
//
// Matrix: H100.
func TestSwappedKey(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		at   hub.Action
		want api.Phase
	}{"BeforeItIsUsed": {hub.ValidateTarget, api.PhaseFailed}, "AfterIt": {hub.GrantRegistration, api.PhaseCompleted}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGlobalHub(t)
			held, release := g.to.hold(test.at)
			key := g.migrate("move", "c1")
			p := g.start(nil, key)
			defer p.stop()
			<-held
			thief, err := message.NewOpeningKey()
			if err != nil {
				t.Fatal(err)
			}
			keys := g.quiet(key, "-keys")
			if len(keys.BinaryData["sourceSealingKey"]) == 0 {
				t.Fatalf("the ConfigMap has no key of the source: %v", keys.BinaryData)
			}
			keys.BinaryData["sourceSealingKey"] = thief.Key().Bytes()
			g.update(keys)
			release()
			m := g.await(key, "the migration ends", settled)
			c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled)
			if m.Status.Phase != test.want {
				t.Errorf("phase %s, want %s: %+v", m.Status.Phase, test.want, c)
			}
			if test.want == api.PhaseFailed && (c == nil || c.Reason != api.ReasonKeysChanged.Name || !strings.Contains(c.Message, keys.Name)) {
				t.Errorf("%+v; want %s", c, api.ReasonKeysChanged)
			}
			g.mustAnnounce(corev1.EventTypeWarning, api.ReasonKeysChanged)
			g.to.mutex.Lock()
			defer g.to.mutex.Unlock()
			if _, err := message.OpenSecret(thief, string(m.UID), g.to.sent[string(m.UID)].BootstrapSecret); err == nil {
				t.Error("the thief has opened the bootstrap kubeconfig of the target")
			}
		})
	}
}

// TestChangedState: a user adds a cluster to the state of a migration. The manager does nothing for the migration until its state is back.
//
// Matrix: H100.
func TestChangedState(t *testing.T) {
	t.Parallel()
	g, key, release := killedInInstall(t)
	defer release()
	state := g.configMap(key, "-state-0")
	clusters := state.Data["clusters"]
	state.Data["clusters"] = strings.Replace(clusters, `"name":"c1"`, `"name":"c0","state":"Selected"},{"name":"c1"`, 1)
	if state.Data["clusters"] == clusters {
		t.Fatalf("the clusters are %s", clusters)
	}
	g.update(state)
	p := g.start(nil, key)
	defer p.stop()
	release()
	m := g.await(key, "the manager says so", func(m *api.ManagedClusterMigration) bool {
		c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == api.ReasonStateLost.Name
	})
	if c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled); !strings.Contains(c.Message, "another client has changed ConfigMap "+key.Namespace+"/move-state-0") {
		t.Errorf("the message is %q", c.Message)
	}
	state.Data["clusters"] = clusters
	g.update(state)
	m = g.await(key, "the cluster has moved", settled)
	g.mustBeMoved(m)
	if m.Status.Counts.Total != 1 {
		t.Errorf("%d clusters have moved, want 1", m.Status.Counts.Total)
	}
}

// TestBrokenMigrationStallsAlone: of several migrations between two hubs, one has lost its state, and another has a ConfigMap that the manager
// can't write. A migration of other clusters moves them, and one of the same cluster waits.
//
// Matrix: H101.
func TestBrokenMigrationStallsAlone(t *testing.T) {
	t.Parallel()
	g := newGlobalHub(t)
	held, release := g.from.hold(hub.InstallBootstrap)
	lost, stuck := g.migrate("lost", "c1"), g.migrate("stuck", "c2")
	other, same := objectKey{Namespace: g.namespace, Name: "other"}, objectKey{Namespace: g.namespace, Name: "same"}
	p := g.start(nil, lost, stuck, other, same)
	defer p.stop()
	<-held
	for _, key := range []objectKey{lost, stuck} {
		g.await(key, "it has begun", func(m *api.ManagedClusterMigration) bool { return m.Status.Phase == api.PhaseInitializing })
	}
	immutable := true
	g.change(stuck, "-state-0", func(cm *corev1.ConfigMap) { cm.Immutable = &immutable })
	g.loseState(lost)
	release()

	g.migrate(other.Name, "c3")
	g.migrate(same.Name, "c1")
	g.mustBeMoved(g.await(other, "the cluster of the sound migration has moved", settled))
	g.await(same, "it waits for the one with the cluster", func(m *api.ManagedClusterMigration) bool {
		c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStarted)
		return m.Status.Phase == api.PhasePending && c != nil && c.Reason == api.ReasonWaiting.Name && strings.Contains(c.Message, lost.String())
	})
	g.await(lost, "the broken one says so", func(m *api.ManagedClusterMigration) bool {
		c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled)
		return c != nil && c.Reason == api.ReasonStateLost.Name
	})
}

// TestBrokenMigrationIsDeleted: the ConfigMap of one migration can't be written, and a newer release has written that of another. A user deletes
// both. They end in the time of each deletion, of which one process has seen all, and events name every cluster of the one whose state is known.
//
// Matrix: H131.
func TestBrokenMigrationIsDeleted(t *testing.T) {
	t.Parallel()
	g, clock := newGlobalHub(t), &leaping{}
	g.clock = clock
	held, release := g.from.hold(hub.InstallBootstrap)
	var clusters []string
	for i := range 25 {
		clusters = append(clusters, fmt.Sprintf("cluster-%02d", i))
	}
	stuck, newer := g.migrate("stuck", clusters...), g.migrate("newer", "other")
	p := g.start(nil, stuck, newer)
	defer func() { p.stop() }()
	defer release()
	<-held
	for _, key := range []objectKey{stuck, newer} {
		g.await(key, "it has begun", func(m *api.ManagedClusterMigration) bool { return m.Status.Phase == api.PhaseInitializing })
	}
	immutable := true
	g.change(stuck, "-state-0", func(cm *corev1.ConfigMap) { cm.Immutable = &immutable })
	g.change(newer, "-state-0", func(cm *corev1.ConfigMap) { cm.Data["format"] = "2" })
	for _, key := range []objectKey{stuck, newer} {
		if err := g.c.Delete(t.Context(), g.read(key)); err != nil {
			t.Fatal(err)
		}
	}
	mustStay := func() {
		t.Helper()
		pause(t.Context(), 20*awaitEvery)
		for _, key := range []objectKey{stuck, newer} {
			if m := g.read(key); len(m.Finalizers) == 0 {
				t.Errorf("%s is released before its time", key)
			}
		}
	}
	mustStay()
	p.stop()
	clock.leap(24 * time.Minute)
	p = g.start(nil, stuck, newer) // it has not tried yet
	mustStay()
	clock.leap(24 * time.Minute)
	for _, key := range []objectKey{stuck, newer} {
		if _, err := p.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		g.awaitGone(key)
	}
	var left []string
	for len(g.events.Events) > 0 {
		if e := <-g.events.Events; strings.Contains(e, api.ReasonLeftBehind.Name) {
			left = append(left, e)
		}
	}
	all := strings.Join(left, "\n")
	for _, name := range clusters {
		if !strings.Contains(all, name) {
			t.Errorf("no event names %s", name)
		}
	}
	if !strings.Contains(all, "a newer release wrote it") {
		t.Error("no event is about the migration of a newer release")
	}
	if t.Failed() {
		t.Logf("events:\n%s", all)
	}
}
