package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/controller/revisionupgrade"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// TestTriggerDoesNotUndoARollback, neither of the command nor of an upgrade; what a person
// asks for does.
func TestTriggerDoesNotUndoARollback(t *testing.T) {
	c := newVirtualization(t)
	f := fixture.Find("F2/VirtualMachinePreference/labelled")
	old := c.machine(f)
	command, err := revision.New(plane.Config(), kubevirt.Family{}, revision.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := func() {
		t.Helper()
		if _, err := command.Run(t.Context(), revision.Scope{Namespace: c.namespace}, nil); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if _, err := command.Advance(t.Context(), c.namespace, []revision.Request{{Name: old, Rollback: true}}); err != nil {
		t.Fatal(err)
	}
	c.upgrade()
	trigger := c.trigger("eager", v1alpha1.ControllerRevisionUpgradeTriggerSpec{})
	c.awaitTrigger(trigger, revisionupgrade.ReasonUpgradesFailed.Name)
	if got := c.revisionName(f); got != old {
		t.Errorf("%s was rolled back, and the trigger repointed it to %s", f.VM, got)
	}
	if len(c.upgrades()) != 0 || len(trigger.Status.Failures) != 1 || trigger.Status.Failures[0].Reason != decision.ReasonRolledBack.Name {
		t.Errorf("upgrades %v, failures %v", c.upgrades(), trigger.Status.Failures)
	}

	upgrade := c.upgradeByName("asked-for", old)
	c.awaitUpgrade(upgrade, revision.Retained)
	if got := c.revisionName(f); got == old {
		t.Errorf("a person asked for it, and %s refers to %s", f.VM, got)
	}
	c.merge(upgrade, `{"spec":{"rollback":true}}`)
	c.awaitUpgrade(upgrade, revision.RolledBack)
	if got := c.revisionName(f); got != old || upgrade.Status.RetainedUntil == nil {
		t.Errorf("rolled back, and %s refers to %s; the new one is retained until %v", f.VM, got, upgrade.Status.RetainedUntil)
	}
	c.outlastRetention()
	name := upgrade.Status.Replacement.Name
	c.await("the new revision to go", func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, &appsv1.ControllerRevision{}))
	})
	c.merge(upgrade, `{"spec":{"rollback":false}}`)
	c.awaitUpgrade(upgrade, revision.Retained)
	if got := c.revisionName(f); got == old {
		t.Errorf("the rollback was taken back, and %s refers to %s", f.VM, got)
	}
}

// TestTriggerFindsAnUpgradeByItsTarget: a person has made it by another name, and another
// upgrade has the name that the trigger would give.
func TestTriggerFindsAnUpgradeByItsTarget(t *testing.T) {
	c := newVirtualization(t)
	mine := c.machine(fixture.Find("F2/VirtualMachinePreference/labelled"))
	other := fixture.Find("F1/VirtualMachineClusterInstancetype/labelled")
	old := c.machine(other)
	c.upgradeByName("mine", mine)
	c.upgradeByName(revisionupgrade.UpgradeName(old, c.controllerRevision(old).UID), "another")
	c.upgrade()
	c.trigger("all", v1alpha1.ControllerRevisionUpgradeTriggerSpec{})
	c.await("the reference of the other virtual machine to be repointed", func() bool { return c.revisionName(other) != old })
	made := map[string]int{}
	for _, one := range c.upgrades() {
		made[one.Spec.TargetName]++
	}
	if diff := cmp.Diff(map[string]int{mine: 1, old: 1, "another": 1}, made); diff != "" {
		t.Errorf("upgrades by target (-want +got):\n%s", diff)
	}
}
