package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/test/hub/ocm"
)

// TestMove moves three clusters by the processes of Godwit. The import controllers are those of backplane 5.0, which
// configure no klusterlet until the migration is over.
//
// Matrix: H21, H59.
func TestMove(t *testing.T) {
	in := install(t)
	for _, h := range []*ocm.Hub{in.hub1, in.hub2} {
		t.Cleanup(h.FreezeImports())
	}
	names := []string{"move-1", "move-2", "move-3"}
	clusters := importSites(t, in.fleet, names...)
	before := map[string]map[string]string{}
	for _, name := range names {
		before[name] = onHub(t, in.hub1, name)
	}
	source, target := layTripwire(t, in.hub1, names...), layTripwire(t, in.hub2, names...)
	m := in.migrate(t, "move", nil, names...)
	secrets := m.keysOf()
	maps.Copy(secrets, secretsOf(t, names...))
	m.mustReach(api.PhaseCompleted)
	m.mustHave(api.ConditionReady, metav1.ConditionTrue, nil)
	if diff := cmp.Diff(&api.ClusterCounts{Total: 3, Moved: 3}, m.object.Status.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	awaitRegistered(t, in.hub2, names...)
	for _, c := range clusters {
		mustHaveMoved(t, in.fleet, before[c.Name], c)
	}
	source.mustBeIntact(t, names...)
	target.mustBeIntact(t, names...)
	m.mustNotLeak(secrets)
}

// TestUnreachable: of three clusters one can't reach hub2. It is back at hub1 as before, and the others move.
//
// Matrix: H38, H67.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	in := install(t)
	names := []string{"partial-1", "partial-2", "partial-3"}
	clusters := importSites(t, in.fleet, names...)
	lost := clusters[1]
	lost.CutOff(in.hub2)
	before := map[string]map[string]string{}
	for _, name := range names {
		before[name] = onHub(t, in.hub1, name)
	}
	spec := managedCluster(t, in.hub1, lost.Name)
	source, target := layTripwire(t, in.hub1, names...), layTripwire(t, in.hub2, names...)
	m := in.migrate(t, "partial", func(s *api.ManagedClusterMigrationSpec) {
		s.SupportedConfigs = &api.MigrationConfig{StageTimeout: &metav1.Duration{Duration: 8 * time.Minute}} // the shortest
	}, names...)
	m.mustReach(api.PhaseRegistering)
	m.mustReachWithin(8*time.Minute+2*patience, api.PhaseCompleted)
	m.mustHave(api.ConditionRegistered, metav1.ConditionFalse, api.ReasonPartiallyRegistered)
	if diff := cmp.Diff(&api.ClusterCounts{Total: 3, Moved: 2, Failed: 1, Restored: 1}, m.object.Status.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if f := m.object.Status.Failures; len(f) != 1 || f[0].Cluster != lost.Name || f[0].Phase != api.PhaseRegistering {
		t.Errorf("failures are %+v, want %s in Registering", f, lost.Name)
	}
	awaitRegistered(t, in.hub1, lost.Name)
	awaitRegistered(t, in.hub2, names[0], names[2])
	mustHaveMoved(t, in.fleet, before[names[0]], clusters[0])
	mustHaveMoved(t, in.fleet, before[names[2]], clusters[2])
	mustBeBack(t, in.fleet, before[lost.Name], lost.Name)
	after := managedCluster(t, in.hub1, lost.Name)
	if diff := cmp.Diff(spec.Spec, after.Spec); diff != "" {
		t.Errorf("spec of ManagedCluster %s (-before +after):\n%s", lost.Name, diff)
	}
	if diff := cmp.Diff(spec.Annotations, after.Annotations); diff != "" {
		t.Errorf("annotations of ManagedCluster %s (-before +after):\n%s", lost.Name, diff)
	}
	source.mustBeIntact(t, names...)
	target.mustBeIntact(t, names...)
}

// TestAbort: a migration that a user aborts in the middle leaves both hubs as they were, object by object.
//
// Matrix: H14, H59.
func TestAbort(t *testing.T) {
	in := install(t)
	names := []string{"abort-1", "abort-2", "abort-3"}
	importSites(t, in.fleet, names...)
	for _, name := range names {
		awaitWork(t, in.hub1, name, 1)
	}
	source, target := layTripwire(t, in.hub1, names...), layTripwire(t, in.hub2, names...)
	before1, before2 := snapshot(t, in.hub1), snapshot(t, in.hub2)
	m := in.migrate(t, "abort", nil, names...)
	secrets := m.keysOf()
	maps.Copy(secrets, secretsOf(t, names...))
	m.mustReach(api.PhaseRegistering)
	m.abort()
	m.mustReach(api.PhaseFailed)
	m.mustHave(api.ConditionReady, metav1.ConditionFalse, api.ReasonAborted)
	awaitRegistered(t, in.hub1, names...)
	for _, name := range names {
		awaitGone(t, in.hub2.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	m.mustNotLeak(secrets)
	if err := in.global.Delete(t.Context(), m.object); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, in.global, m.object)
	for _, d := range differences(before1, snapshot(t, in.hub1)) {
		t.Errorf("hub1: %s", d)
	}
	for _, d := range differences(before2, snapshot(t, in.hub2)) {
		t.Errorf("hub2: %s", d)
	}
	source.mustBeIntact(t, names...)
	target.mustBeIntact(t)
}

// awaitGone waits until a hub has deleted an object.
func awaitGone(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	await(t, fmt.Sprintf("the end of %T %s", o, o.GetName()), func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("it is there, with finalizers %v", o.GetFinalizers()))
	})
}
