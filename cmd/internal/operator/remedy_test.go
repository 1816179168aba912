package operator

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/controller/revisionupgrade"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// TestPrintedCommandUpgradesWhileItRuns: a user pastes the command in the message of an upgrade that waits for a running
// virtual machine, and the manager upgrades the revision. The same holds for the rollback.
func TestPrintedCommandUpgradesWhileItRuns(t *testing.T) {
	c := newVirtualization(t)
	f := fixture.Find("F1/VirtualMachineClusterInstancetype/labelled")
	old := c.machine(f, fixture.Running)
	c.upgrade()
	c.trigger("all", v1alpha1.ControllerRevisionUpgradeTriggerSpec{})
	c.awaitDeferred()
	upgrade := &c.upgrades()[0]
	c.paste(readyMessage(upgrade))
	c.awaitUpgrade(upgrade, revision.Retained)
	if got := c.revisionName(f); got == old {
		t.Errorf("%s runs, and refers to %s", f.VM, got)
	}

	c.merge(upgrade, `{"spec":{"rollback":true,"onRunning":null}}`)
	c.awaitUpgrade(upgrade, revision.Pending)
	if got := readyMessage(upgrade); !strings.Contains(got, "roll back while it runs") {
		t.Errorf("a rollback that waits has the message %q", got)
	}
	c.paste(readyMessage(upgrade))
	c.awaitUpgrade(upgrade, revision.RolledBack)
	if got := c.revisionName(f); got != old {
		t.Errorf("rolled back, and %s refers to %s, want %s", f.VM, got, old)
	}
}

// TestPrintedCommandAllowsLosses: a user pastes the command in a failure of a trigger, and the manager upgrades this revision alone.
func TestPrintedCommandAllowsLosses(t *testing.T) {
	c := newVirtualization(t)
	machines := []fixture.Fixture{fixture.Find("F1/VirtualMachineInstancetype/labelled"), fixture.Find("F1/VirtualMachineClusterInstancetype/labelled")}
	names := map[string]string{}
	for _, f := range machines {
		lossy := f
		lossy.Data = strings.Replace(f.Data, `"spec":{`, `"spec":{"experimental":true,`, 1)
		names[f.VM] = c.machine(lossy)
	}
	c.upgrade()
	trigger := c.trigger("all", v1alpha1.ControllerRevisionUpgradeTriggerSpec{})
	c.awaitTrigger(trigger, revisionupgrade.ReasonUpgradesFailed.Name)
	at := slices.IndexFunc(trigger.Status.Failures, func(one v1alpha1.Failure) bool { return one.Name == names[machines[0].VM] })
	if at < 0 || trigger.Status.Failures[at].Reason != decision.ReasonLossy.Name {
		t.Fatalf("failures %+v", trigger.Status.Failures)
	}
	c.paste(trigger.Status.Failures[at].Message)
	c.await("the revision with losses to be upgraded", func() bool { return c.revisionName(machines[0]) != names[machines[0].VM] })
	if got := c.revisionName(machines[1]); got != names[machines[1].VM] {
		t.Errorf("the command is about another revision, and %s refers to %s", machines[1].VM, got)
	}
}

// TestSettingsOfATriggerReachItsUpgrades that have not ended, also if no manager was running at the change, and except those
// with a value of their own.
func TestSettingsOfATriggerReachItsUpgrades(t *testing.T) {
	c := newVirtualization(t)
	follows, differs := fixture.Find("F1/VirtualMachineClusterInstancetype/labelled"), fixture.Find("F2/VirtualMachinePreference/labelled")
	old, own := c.machine(follows, fixture.Running), c.machine(differs, fixture.Running)
	rolledBack := fixture.Find("F1/VirtualMachineInstancetype/labelled")
	ended := c.machine(rolledBack)
	_, user := c.serviceAccountOf(RevisionUpgrader, func(rbacv1.PolicyRule) bool { return false })
	start := func() *process { return c.manageAs(user, "", EnableVariable+"=false", EnableRevisionUpgrader+"=true") }
	manager := start()
	trigger := c.trigger("all", v1alpha1.ControllerRevisionUpgradeTriggerSpec{OnRunning: v1alpha1.OnRunningDefer})
	byTarget := map[string]*v1alpha1.ControllerRevisionUpgrade{}
	c.await("three upgrades", func() bool {
		for _, one := range c.upgrades() {
			byTarget[one.Spec.TargetName] = &one
		}
		return len(byTarget) == 3
	})
	c.awaitUpgrade(byTarget[ended], revision.Retained)
	c.merge(byTarget[ended], `{"spec":{"rollback":true}}`)
	c.merge(byTarget[own], `{"spec":{"onRunning":"Defer"}}`)
	c.awaitUpgrade(byTarget[ended], revision.RolledBack)
	c.awaitUpgrade(byTarget[own], revision.Converted)
	c.awaitUpgrade(byTarget[old], revision.Converted)
	manager.mustEnd()
	c.kubectl("kubectl patch crut " + trigger.Name + ` --type=merge -p '{"spec": {"onRunning": "Hold"}}'`)
	start()
	c.awaitUpgrade(byTarget[old], revision.Retained)
	if got := c.revisionName(follows); got == old {
		t.Errorf("%s runs, and refers to %s", follows.VM, got)
	}
	if got := c.revisionName(differs); got != own {
		t.Errorf("its upgrade defers, and %s refers to %s", differs.VM, got)
	}
	c.kubectl("kubectl patch cru " + byTarget[own].Name + " -n " + c.namespace + ` --type=merge -p '{"spec": {"onRunning": null}}'`)
	c.awaitUpgrade(byTarget[own], revision.Retained)
	if got := c.revisionName(rolledBack); got != ended {
		t.Errorf("it was rolled back, and %s refers to %s", rolledBack.VM, got)
	}
}

// paste runs the command with kubectl in a message, as a user who copies it.
func (c *cluster) paste(message string) {
	c.t.Helper()
	command := regexp.MustCompile(`kubectl [^;]*'`).FindString(message)
	if command == "" {
		c.t.Fatalf("no command in %q", message)
	}
	c.kubectl(command)
}

// kubectl runs a command line as an administrator.
func (c *cluster) kubectl(line string) {
	c.t.Helper()
	assets, err := filepath.Abs(cmp.Or(os.Getenv("KUBEBUILDER_ASSETS"), filepath.Join("..", "..", "..", "bin", "controlplane")))
	if err != nil {
		c.t.Fatal(err)
	}
	kubeconfig := filepath.Join(c.t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, c.plane.Config()); err != nil {
		c.t.Fatal(err)
	}
	command := exec.CommandContext(c.t.Context(), "sh", "-ec", line)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+assets+string(os.PathListSeparator)+os.Getenv("PATH"))
	if said, err := command.CombinedOutput(); err != nil {
		c.t.Fatalf("%s: %v: %s", line, err, said)
	}
}

func readyMessage(upgrade *v1alpha1.ControllerRevisionUpgrade) string {
	ready := meta.FindStatusCondition(upgrade.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return ""
	}
	return ready.Message
}
