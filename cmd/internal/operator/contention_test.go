package operator

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/serving"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

// keepHot updates one object over and over until stop is called, which returns how
// often.
func (c *cluster) keepHot(kind, name string) (stop func() int) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	done, n := make(chan struct{}), 0
	go func() {
		defer close(done)
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: c.group, Version: "v1", Kind: kind})
		o.SetName(name)
		for ; walk.Wait(ctx, 20*time.Millisecond) == nil; n++ { // leaves the machine something for others
			patch := []byte(`{"spec":{"at":"` + time.Now().Format(time.RFC3339Nano) + `"}}`)
			if err := c.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); err != nil && ctx.Err() == nil {
				c.t.Errorf("write the hot object: %v", err)
				return
			}
		}
	}()
	stop = sync.OnceValue(func() int { cancel(); <-done; return n })
	c.t.Cleanup(func() { stop() })
	return stop
}

// TestHotObjectStopsNothing: another client updates one object all the time. It is stored
// at the new version by that alone, and its migration ends like any other.
func TestHotObjectStopsNothing(t *testing.T) {
	t.Parallel()
	c := newClusterOn(t, ownPlane(t))
	const n = 100
	geese, swans, ducks := c.define("geese", n, optedIn), c.define("swans", n, nil), c.define("ducks", 50, optedIn)
	c.manage("storageVersionMigrator: {scopes: [{group: " + c.group + "}], defaults: {settle: 0s}}")
	hotGoose, hotSwan := c.keepHot("Geese", "o-0050"), c.keepHot("Swan", "o-0050")
	for _, crd := range []string{geese, swans, ducks} {
		c.flip(crd)
	}
	// The CRD without the label has a migration of its own, by another write.
	err := c.Create(t.Context(), &v1alpha1.CRDMigration{ObjectMeta: objectMeta(swans), Spec: v1alpha1.CRDMigrationSpec{Write: "Update"}})
	if err != nil {
		t.Fatal(err)
	}
	for crd, want := range map[string]int{geese: n, swans: n, ducks: 50} {
		c.awaitReason(crd, decision.ReasonSucceeded.Name)
		c.mustBeStored(crd, map[string]int{"v2": want, "v1": 0})
		if got := c.storedVersions(crd); got != "v2" {
			t.Errorf("storedVersions of %s is %s", crd, got)
		}
	}
	t.Logf("3 CRDs migrated beside %d and %d updates of one object each", hotGoose(), hotSwan())
}

// TestTwoManagersByMistake have no lease between them, and do the same work at the
// same time.
func TestTwoManagersByMistake(t *testing.T) {
	t.Parallel()
	c := newClusterOn(t, ownPlane(t))
	const n = 400
	geese := c.define("geese", n, optedIn)
	c.manage(c.slowly(40))
	c.manage(c.slowly(40))
	c.flip(geese)
	c.awaitReason(geese, decision.ReasonSucceeded.Name)
	var rests string
	since := time.Now()
	c.await("the status to rest for 10 s", func() bool {
		if now := c.migration(geese).ResourceVersion; now != rests {
			rests, since = now, time.Now()
		}
		return time.Since(since) > 10*time.Second
	})
	m := c.awaitReason(geese, decision.ReasonSucceeded.Name)
	if m.Status.CompletionTime == nil || m.Status.Checkpoint != nil || m.Status.Progress != "400/400" || m.Status.Storage.Total() != n {
		t.Errorf("in the end the status is %+v", m.Status)
	}
	c.mustBeMigratedOnce(geese, n)
	if trims := c.trims(geese); trims != 1 {
		t.Errorf("trimmed %d times", trims)
	}
	t.Logf("2 managers, %d objects, %d revisions, 1 trim, %+v", n, c.revisions(geese), *m.Status.Storage)
}

// trims counts how often a CRD's storedVersions became v2 alone, from
// etcd's history.
func (c *cluster) trims(crd string) (n int) {
	c.t.Helper()
	was := ""
	for _, stored := range c.history("/registry/apiextensions.k8s.io/customresourcedefinitions/" + crd) {
		status, _ := stored["status"].(map[string]any)
		now, _, err := unstructured.NestedStringSlice(status, "storedVersions")
		if err != nil {
			c.t.Fatal(err)
		}
		if slices.Equal(now, []string{"v2"}) && was != "v2" {
			n++
		}
		if was = ""; len(now) == 1 {
			was = now[0]
		}
	}
	return n
}

// TestStandbyTakesOver from a leader that is killed, once its lease has run out.
func TestStandbyTakesOver(t *testing.T) {
	t.Parallel()
	c := newClusterOn(t, ownPlane(t))
	const n = 400
	geese := c.define("geese", n, optedIn)
	first := c.manageAs(c.plane.Config(), c.slowly(40), electIn+"=default")
	c.await("the first manager to lead", func() bool { return c.leader() != "" })
	leader := c.leader()
	c.manageAs(c.plane.Config(), c.slowly(40), electIn+"=default")
	c.flip(geese)
	c.awaitMiddle(geese, n)
	if now := c.leader(); now != leader {
		t.Fatalf("%s leads, and %s did", now, leader)
	}
	first.end(syscall.SIGKILL)
	before := c.stored(geese, "v2")
	c.awaitReason(geese, decision.ReasonSucceeded.Name)
	if c.leader() == leader {
		t.Error("the dead manager still leads")
	}
	c.mustBeMigratedOnce(geese, n)
	t.Logf("the leader was killed with %d of %d objects written; %d revisions in the end", before, n, c.revisions(geese))
}

// leader is who holds the managers' lease.
func (c *cluster) leader() string {
	c.t.Helper()
	lease := &unstructured.Unstructured{}
	lease.SetGroupVersionKind(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"})
	err := c.Get(c.t.Context(), client.ObjectKey{Namespace: "default", Name: leaderElectionID(StorageVersionMigrator)}, lease)
	if client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	}
	if apierrors.IsNotFound(err) {
		return ""
	}
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return holder
}

// TestManagersOfOtherScopesLeaveEachOtherAlone: what one has made is not the other's
// to take away, though its CRD is in no other manager's scope.
func TestManagersOfOtherScopesLeaveEachOtherAlone(t *testing.T) {
	c := newCluster(t)
	geese := c.define("geese", 20, optedIn)
	c.manageAs(c.plane.Config(), "storageVersionMigrator: {scopes: [{group: "+c.group+"}], defaults: {settle: 0s}}", electIn+"="+metav1.NamespaceDefault)
	c.flip(geese)
	made := c.awaitReason(geese, decision.ReasonSucceeded.Name)

	other := newClusterOn(t, c.plane)
	other.manageAs(c.plane.Config(), "storageVersionMigrator: {scopes: [{group: "+other.group+"}], defaults: {settle: 0s}}", electIn+"="+metav1.NamespaceSystem)
	lease := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: leaderElectionID(StorageVersionMigrator)}
	selector, err := labels.Parse(serving.LeaseSelector)
	if err != nil {
		t.Fatal(err)
	}
	held := &coordinationv1.Lease{}
	c.await("the other manager to work", func() bool { return c.Get(t.Context(), lease, held) == nil })
	if component, _ := serving.Process(held); component != "storage-version-migrator" || !selector.Matches(labels.Set(held.Labels)) {
		t.Errorf("godwit version does not find the manager by the labels of its lease: %v", held.Labels)
	}
	c.unlabel(geese) // both look at it now, and the one that made the migration takes it away
	c.await("the crdmigration to go", func() bool { return c.migration(geese) == nil })

	ducks := c.define("ducks", 20, optedIn)
	c.flip(ducks)
	first := c.awaitReason(ducks, decision.ReasonSucceeded.Name)
	swans := other.define("swans", 1, optedIn) // what the other manager looks at next
	other.flip(swans)
	other.awaitReason(swans, decision.ReasonSucceeded.Name)
	if now := c.migration(ducks); now == nil || now.UID != first.UID {
		t.Errorf("the migration that one manager made is gone, or was made again: %v", now)
	}
	if made.Labels["app.kubernetes.io/instance"] != metav1.NamespaceDefault {
		t.Errorf("labels %v", made.Labels)
	}
}

// TestOneManagerLeadsEachFeature, whatever other features it has: one of two managers with
// different sets of them stands by for the feature that both have.
func TestOneManagerLeadsEachFeature(t *testing.T) {
	c := newCluster(t)
	namespace := "leases-of-features"
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: objectMeta(namespace)}); err != nil {
		t.Fatal(err)
	}
	leaders := func() map[string]string {
		leases, all := &coordinationv1.LeaseList{}, map[string]string{}
		if err := c.List(t.Context(), leases, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, one := range leases.Items {
			all[one.Name] = ptr.Deref(one.Spec.HolderIdentity, "")
		}
		return all
	}
	const migrator, upgrader = "godwit-storage-version-migrator", "godwit-revision-upgrader"
	scope := "storageVersionMigrator: {scopes: [{group: " + c.group + "}]}"
	first := c.manageAs(c.plane.Config(), scope, electIn+"="+namespace, EnableRevisionUpgrader+"=true")
	c.await("the first manager to lead both features", func() bool { now := leaders(); return now[migrator] != "" && now[upgrader] != "" })
	led := leaders()
	c.manageAs(c.plane.Config(), scope, electIn+"="+namespace)
	first.end(syscall.SIGTERM)
	c.await("the second manager to lead the feature that it has", func() bool { now := leaders()[migrator]; return now != "" && now != led[migrator] })
	if now := leaders(); len(now) != 2 || now[upgrader] != "" {
		t.Errorf("leases %v, of which the first manager had %v", now, led)
	}
}
