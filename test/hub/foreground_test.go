package hub_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// TestForegroundDeletion: Argo CD prunes by a foreground deletion, for which the garbage collector deletes what the migration owns
// first. The state stays until the rollback has ended, and goes with the migration.
//
// Matrix: H86.
func TestForegroundDeletion(t *testing.T) {
	t.Parallel()
	// A control plane of its own: a controller manager deletes tokens without a ServiceAccount, which other tests have.
	own := newPlanes(t, 1)[0]
	stop, err := own.StartControllerManager(t.Context(), "--controllers=garbage-collector-controller")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	g := newGlobalHubOn(t, own.Config(), withoutAccounts{hubMapper()})
	ended, aborted := objectKey{Namespace: g.namespace, Name: "ended"}, objectKey{Namespace: g.namespace, Name: "aborted"}
	p := g.start(nil, ended, aborted)
	defer p.stop()
	g.migrate("ended", "c0")
	g.mustBeMoved(g.await(ended, "the clusters have moved", settled))
	granting, granted := g.to.hold(hub.GrantRegistration)
	defer granted()
	reverting, reverted := g.from.hold(hub.RevertBootstrap)
	defer reverted()
	g.migrate("aborted", "c1")
	<-granting

	g.deleteInForeground(aborted)
	select {
	case <-reverting: // the rollback runs
	case <-time.After(patience):
		t.Fatal("the source hub is not told to roll back")
	}
	pause(t.Context(), 20*awaitEvery)
	if names := g.stateOf(aborted); !slices.Contains(names, "aborted-state-0") {
		t.Errorf("the state is %v while work is left", names)
	}
	reverted()
	granted()
	g.awaitGone(aborted)
	g.deleteInForeground(ended)
	g.awaitGone(ended)
	for _, key := range []objectKey{aborted, ended} {
		g.awaitNoState(key)
	}
	for len(g.events.Events) > 0 {
		if e := <-g.events.Events; strings.Contains(e, api.ReasonLeftBehind.Name) {
			t.Errorf("event %s, want none: nothing is left", e)
		}
	}
}

// TestDeletedStateStaysDeleted: the garbage collector deletes a migration and its state while the manager, which has read both, has not
// written yet. Nothing makes the state again, which nothing would delete then.
//
// Matrix: H86.
func TestDeletedStateStaysDeleted(t *testing.T) {
	t.Parallel()
	g := newGlobalHub(t)
	key := g.migrate("ended", "c1")
	p := g.start(nil, key)
	m := g.await(key, "the cluster has moved, and the migration may go", func(m *api.ManagedClusterMigration) bool { return settled(m) && len(m.Finalizers) == 0 })
	p.stop()
	m.Finalizers = []string{metav1.FinalizerDeleteDependents}
	g.update(m)
	if err := g.c.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}

	collected := false
	g.own = interceptor.NewClient(g.c, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, at objectKey, o client.Object, opts ...client.GetOption) error {
		err := c.Get(ctx, at, o, opts...)
		if at.Name == "ended-state-0" && !collected {
			collected = true
			g.loseState(key)
			m := g.read(key)
			m.Finalizers = nil
			g.update(m)
		}
		return err
	}})
	p = g.start(nil)
	defer p.stop()
	if _, err := p.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		t.Error(err)
	}
	if names := g.stateOf(key); !collected || len(names) > 0 {
		t.Errorf("collected: %t; left: %v", collected, names)
	}
}

func (g *globalHub) deleteInForeground(key objectKey) {
	g.t.Helper()
	if err := g.c.Delete(g.t.Context(), g.read(key), client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		g.t.Fatal(err)
	}
}

// stateOf returns the ConfigMaps of a migration.
func (g *globalHub) stateOf(key objectKey) []string {
	g.t.Helper()
	list := &corev1.ConfigMapList{}
	if err := g.c.List(g.t.Context(), list, client.InNamespace(key.Namespace)); err != nil {
		g.t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		if name := list.Items[i].Name; name == key.Name+"-state-0" || name == key.Name+"-keys" {
			names = append(names, name)
		}
	}
	return names
}

// awaitNoState waits until the garbage collector has deleted the ConfigMaps of a migration.
func (g *globalHub) awaitNoState(key objectKey) {
	g.t.Helper()
	for range int(patience / awaitEvery) {
		if len(g.stateOf(key)) == 0 {
			return
		}
		pause(g.t.Context(), awaitEvery)
	}
	g.t.Errorf("left of %s: %v", key, g.stateOf(key))
}
