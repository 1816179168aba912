package operator

import (
	"testing"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// TestManagerWithTheFeatureOffMigratesNothing: neither a CRD in scope nor one that a
// CRDMigration names. Another feature of the same manager shows that it works.
func TestManagerWithTheFeatureOffMigratesNothing(t *testing.T) {
	c := newVirtualization(t)
	geese, ducks := c.define("geese", 3, optedIn), c.define("ducks", 3, nil)
	c.flip(geese)
	c.flip(ducks)
	if err := c.Create(t.Context(), &v1alpha1.CRDMigration{ObjectMeta: objectMeta(ducks)}); err != nil {
		t.Fatal(err)
	}
	off := c.manageAs(c.plane.Config(), "", EnableVariable+"=false", EnableRevisionUpgrader+"=true")
	c.awaitTrigger(c.trigger("nothing", v1alpha1.ControllerRevisionUpgradeTriggerSpec{}), decision.ReasonSucceeded.Name)
	off.mustEnd()
	for _, crd := range []string{geese, ducks} {
		c.mustBeStored(crd, map[string]int{"v1": 3, "v2": 0})
		if got := c.storedVersions(crd); got != "v1,v2" {
			t.Errorf("storedVersions of %s is [%s], want both versions", crd, got)
		}
	}
	if m := c.migration(geese); m != nil {
		t.Errorf("a CRDMigration was made: %+v", m)
	}
	if m := c.migration(ducks); len(m.Status.Conditions) > 0 {
		t.Errorf("the CRDMigration was looked at: %+v", m.Status)
	}

	c.manage("storageVersionMigrator: {scopes: [{group: " + c.group + "}], defaults: {settle: 0s}}")
	for _, crd := range []string{geese, ducks} {
		c.awaitReason(crd, decision.ReasonSucceeded.Name)
		c.mustBeStored(crd, map[string]int{"v2": 3, "v1": 0})
	}
}
