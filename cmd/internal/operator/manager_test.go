package operator

import (
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/controller/crdmigration"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// TestCRDInScopeIsMigratedByItself: from the flip of the storage version to a
// CRDMigration that says Succeeded, without anybody's doing.
func TestCRDInScopeIsMigratedByItself(t *testing.T) {
	c := newCluster(t)
	geese, ducks := c.define("geese", 50, optedIn), c.define("ducks", 5, nil)
	c.manage("storageVersionMigrator: {scopes: [{group: " + c.group + "}], defaults: {settle: 0s}}")
	c.flip(geese)
	c.flip(ducks)

	m := c.awaitReason(geese, decision.ReasonSucceeded.Name)
	c.mustBeStored(geese, map[string]int{"v2": 50, "v1": 0})
	if m.Status.Storage == nil || m.Status.Storage.Migrated != 50 || m.Status.Progress != "50/50" || m.Status.CompletionTime == nil || m.Status.Checkpoint != nil {
		t.Errorf("status %+v", m.Status)
	}
	if len(m.Status.StoredVersions) != 1 || m.Status.StoredVersions[0] != "v2" {
		t.Errorf("storedVersions %v", m.Status.StoredVersions)
	}
	for _, kind := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled, v1alpha1.ConditionBlocked} {
		if meta.IsStatusConditionTrue(m.Status.Conditions, kind) {
			t.Errorf("%s is True in the end", kind)
		}
	}
	if c.migration(ducks) != nil {
		t.Error("a CRD without the label was taken in")
	}
	c.mustBeStored(ducks, map[string]int{"v1": 5})

	// A user asks for it by name.
	if err := c.Create(t.Context(), &v1alpha1.CRDMigration{ObjectMeta: objectMeta(ducks)}); err != nil {
		t.Fatal(err)
	}
	c.awaitReason(ducks, decision.ReasonSucceeded.Name)
	c.mustBeStored(ducks, map[string]int{"v2": 5, "v1": 0})
}

// TestMigrationOfMissingCRDSaysSo and continues once the CRD exists.
func TestMigrationOfMissingCRDSaysSo(t *testing.T) {
	c := newCluster(t)
	c.manage("storageVersionMigrator: {scopes: [{group: " + c.group + "}], defaults: {settle: 0s}}")
	name := "gulls." + c.group
	if err := c.Create(t.Context(), &v1alpha1.CRDMigration{ObjectMeta: objectMeta(name)}); err != nil {
		t.Fatal(err)
	}
	m := c.awaitReason(name, decision.ReasonCRDNotFound.Name)
	if !meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionStalled) {
		t.Error("a migration that waits for a person is not Stalled")
	}
	c.define("gulls", 3, nil)
	c.awaitReason(name, decision.ReasonSucceeded.Name)
}

// TestKilledManagerWritesNothingTwice: a manager is killed in the middle of a
// migration, and the next one resumes at the checkpoint in the status.
func TestKilledManagerWritesNothingTwice(t *testing.T) {
	c := newCluster(t)
	const n = 1200
	geese := c.define("geese", n, optedIn)
	slowly := "storageVersionMigrator: {scopes: [{group: " + c.group + "}], defaults: {settle: 0s, maxWritesPerSecond: 80}}" // several writes of the status go by
	first := c.manage(slowly)
	c.flip(geese)
	c.await("a checkpoint and some progress", func() bool {
		m := c.migration(geese)
		return m != nil && m.Status.Checkpoint != nil && m.Status.Storage != nil && m.Status.Storage.Migrated > 100
	})
	c.awaitReason(geese, crdmigration.ReasonMigrating.Name)
	first.end(syscall.SIGKILL)
	c.manage(slowly)
	m := c.awaitReason(geese, decision.ReasonSucceeded.Name)
	c.mustBeStored(geese, map[string]int{"v2": n, "v1": 0})
	if m.Status.Storage.Skipped < 100 {
		t.Errorf("%+v: the second manager wrote again what the first had written", *m.Status.Storage)
	}
	if got := c.revisions(geese); got != 2*n {
		t.Errorf("%d revisions of %d objects, want two each: created, migrated", got, n)
	}
}

// underWay has a manager in the middle of the migration of n objects, slowly.
func (c *cluster) underWay(n int) (crd string) {
	c.t.Helper()
	crd = c.define("geese", n, optedIn)
	c.manage("storageVersionMigrator: {scopes: [{group: " + c.group + "}], defaults: {settle: 0s, maxWritesPerSecond: 200}}")
	c.flip(crd)
	c.await("objects being written", func() bool { m := c.migration(crd); return m != nil && m.Status.Checkpoint != nil })
	return crd
}

// TestSuspendStopsWithinAPage: a suspended migration writes one more page at most.
func TestSuspendStopsWithinAPage(t *testing.T) {
	c := newCluster(t)
	const n = 1500
	geese := c.underWay(n)
	c.suspend(geese, true)
	m := c.awaitReason(geese, crdmigration.ReasonSuspended.Name)
	if done := m.Status.Storage; done == nil || done.Total() >= n {
		t.Errorf("suspended after %+v of %d objects", done, n)
	}
	c.suspend(geese, false)
	c.awaitReason(geese, decision.ReasonSucceeded.Name)
	if got := c.revisions(geese); got != 2*n {
		t.Errorf("%d revisions of %d objects, want two each", got, n)
	}
}

// TestLabelRemovedTakesTheMigrationAway, which the manager made, and leaves
// storedVersions as they are.
func TestLabelRemovedTakesTheMigrationAway(t *testing.T) {
	c := newCluster(t)
	geese := c.underWay(1500)
	c.unlabel(geese)
	c.await("the crdmigration to go", func() bool { return c.migration(geese) == nil })
	if got := c.storedVersions(geese); got != "v1,v2" {
		t.Errorf("storedVersions is %s: trimmed although it was no longer asked for", got)
	}
}

// TestDeletedMigrationIsMadeAgain where there is something to migrate: the
// CRD is as it was, and nothing else happens to it that would tell.
func TestDeletedMigrationIsMadeAgain(t *testing.T) {
	c := newCluster(t)
	geese := c.define("geese", 3, optedIn)
	c.manage("storageVersionMigrator: {scopes: [{group: " + c.group + "}], defaults: {settle: 1h}}")
	c.flip(geese)
	first := c.awaitReason(geese, decision.ReasonSettling.Name)
	if err := c.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	c.await("another crdmigration", func() bool { m := c.migration(geese); return m != nil && m.UID != first.UID })
	c.awaitReason(geese, decision.ReasonSettling.Name)
}
