package hub_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// beginWithOneLeft runs all parties until the first cluster has moved and the source hub has nothing of it. The second one can't
// reach the target hub, so phase Registering has not ended.
func beginWithOneLeft(t *testing.T) *managed {
	t.Helper()
	m := newManaged(t, 2)
	m.klusterlets[1].Unreachable = true
	m.run(m.source)
	m.run(m.target)
	m.begin()
	o := m.g.await(m.key, "the first cluster has moved", func(o *api.ManagedClusterMigration) bool {
		return len(o.Status.Places) == 1 && o.Status.Places[0].Place == string(hub.AwaitRegistration) && o.Status.Counts.Moved == 1
	})
	if o.Status.Phase != api.PhaseRegistering || o.Status.Places[0].Clusters != 1 {
		t.Errorf("phase %s, places %+v, want one cluster left in Registering", o.Status.Phase, o.Status.Places)
	}
	m.moved(m.sites[0], m.before[m.sites[0].name])
	return m
}

// TestAllPartiesOneDetached: a user deletes a cluster at the source hub while the target waits for it. What is gone is done, the
// target deletes what it has of the cluster, and the migration ends.
//
// Matrix: H84.
func TestAllPartiesOneDetached(t *testing.T) {
	t.Parallel()
	m := beginWithOneLeft(t)
	name := m.sites[1].name
	if err := m.source.c.Delete(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	m.clock.leap(12 * time.Minute)
	o := m.end(api.PhaseCompleted)
	if c := o.Status.Counts; c.Moved != 1 || c.Gone != 1 || c.Failed != 0 {
		t.Errorf("counts %+v, want one moved and one gone", c)
	}
	if f := o.Status.Failures; len(f) != 1 || f[0].Cluster != name || !strings.Contains(f[0].Message, "a user has deleted it") || !strings.Contains(f[0].Message, "left on the target hub") {
		t.Errorf("failures %+v, want that a user has deleted %s, and what is left", f, name)
	}
	if err := m.target.c.Get(t.Context(), client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{}); err != nil {
		t.Errorf("the target hub has lost the last ManagedCluster %s: %v", name, err)
	}
}

// TestAllPartiesForget: a cluster goes offline on its way back. The migration names it with what it waits for, and ends without it
// when a user says so.
//
// Matrix: H85.
func TestAllPartiesForget(t *testing.T) {
	t.Parallel()
	m := beginWithOneLeft(t)
	name := m.sites[1].name
	m.klusterlets[1].Silence()
	m.clock.leap(12 * time.Minute)
	m.g.await(m.key, "the second cluster waits", func(o *api.ManagedClusterMigration) bool {
		return o.Status.Phase == api.PhaseCleaning && len(o.Status.Places) == 1 && o.Status.Places[0].Place == string(hub.AwaitReturn)
	})
	m.clock.leap(12 * time.Minute)
	m.g.await(m.key, "the time of the cleanup to end", func(o *api.ManagedClusterMigration) bool { return o.Status.Phase == api.PhaseCompleted })
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"forgottenManagedClusters": []string{name}}})
	if err != nil {
		t.Fatal(err)
	}
	o := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: m.key.Namespace, Name: m.key.Name}}
	if err := m.g.c.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
	o = m.end(api.PhaseCompleted)
	if c := o.Status.Counts; c.Moved != 1 || c.Forgotten != 1 {
		t.Errorf("counts %+v, want one moved and one forgotten", c)
	}
	m.g.mustAnnounce(corev1.EventTypeWarning, api.ReasonLeftBehind)
	if f := o.Status.Failures; len(f) != 1 || !strings.Contains(f[0].Message, "left on the source hub ") || !strings.Contains(f[0].Message, "on the target hub the objects that the migration has created") {
		t.Errorf("failures %+v, want what is left of %s", f, name)
	}
}

// TestAllPartiesDeletionEnds: the target hub never answers again. The deleted migration ends all the same, and an event says what is
// left.
//
// Matrix: H86.
func TestAllPartiesDeletionEnds(t *testing.T) {
	t.Parallel()
	m := newManaged(t, 1)
	m.klusterlets[0].Unreachable = true
	m.run(m.source)
	stop := m.run(m.target)
	m.begin()
	o := m.g.await(m.key, "the target waits for the cluster", func(o *api.ManagedClusterMigration) bool {
		return len(o.Status.Places) == 1 && o.Status.Places[0].Place == string(hub.AwaitRegistration)
	})
	stop()
	if err := m.g.c.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	m.g.await(m.key, "the target to be waited for", func(o *api.ManagedClusterMigration) bool {
		return len(o.Status.Places) == 1 && o.Status.Places[0].Place == string(hub.StopAccepting)
	})
	m.clock.leap(12 * time.Minute)
	m.g.await(m.key, "the cluster is back at the source hub", func(o *api.ManagedClusterMigration) bool {
		return o.Status.Phase == api.PhaseFailed && len(o.Status.Places) == 1 && o.Status.Places[0].Place == string(hub.DeleteCreated)
	})
	m.clock.leap(12 * time.Minute)
	m.g.awaitGone(m.key)
	m.g.mustAnnounce(corev1.EventTypeWarning, api.ReasonLeftBehind)
}
