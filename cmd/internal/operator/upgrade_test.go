package operator

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	kubevirtcluster "github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// TestUpgradeKeepsWhatItFound: the source as it was found first stays in the status. With a backup it proves what was converted.
func TestUpgradeKeepsWhatItFound(t *testing.T) {
	c := newVirtualization(t)
	f := fixture.Find("F1/VirtualMachineClusterInstancetype/labelled")
	source := c.controllerRevision(c.machine(f))
	upgrade := c.upgradeByName("told", source.Name)
	c.upgrade()
	c.awaitUpgrade(upgrade, revision.Retained)
	want := &v1alpha1.RevisionSource{UID: source.UID, Version: "v1alpha1", Form: "Object", Hash: decision.Hash(source), ResourceVersion: source.ResourceVersion}
	if diff := cmp.Diff(want, upgrade.Status.Source); diff != "" {
		t.Errorf("the source (-want +got):\n%s", diff)
	}
	replacement := c.controllerRevision(c.revisionName(f))
	if diff := cmp.Diff(&v1alpha1.RevisionReplacement{Name: replacement.Name, UID: replacement.UID, Version: "v1beta1", Hash: decision.Hash(replacement)}, upgrade.Status.Replacement); diff != "" {
		t.Errorf("the replacement (-want +got):\n%s", diff)
	}
	for _, place := range upgrade.Status.References {
		if place.State != decision.ReferenceNew {
			t.Errorf("%s of %s is %s, and names the replacement", place.Path, place.Name, place.State)
		}
	}
	// The annotation of the source says that the retention is over.
	c.merge(c.controllerRevision(source.Name), fmt.Sprintf(`{"metadata":{"annotations":{%q:"2026-01-01T00:00:00Z"}}}`, decision.UnreferencedAnnotation))
	c.look(upgrade)
	c.awaitUpgrade(upgrade, revision.Succeeded)
	if diff := cmp.Diff(want, upgrade.Status.Source); diff != "" {
		t.Errorf("the deleted source (-want +got):\n%s", diff)
	}
}

// TestMachineIsDeletedBeforeItsUpgrade: nothing is left to upgrade. No user action is required, although the upgrade names its
// revision by name alone.
func TestMachineIsDeletedBeforeItsUpgrade(t *testing.T) {
	c := newVirtualization(t)
	f := fixture.Find("F2/VirtualMachinePreference/labelled")
	source := c.controllerRevision(c.machine(f, fixture.Running))
	upgrade := c.upgradeByName("waits", source.Name)
	c.upgrade()
	c.awaitUpgrade(upgrade, revision.Converted)
	found := upgrade.Status.Source
	for _, gone := range []client.Object{c.virtualMachine(f), source} {
		if err := c.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	c.look(upgrade)
	c.awaitUpgrade(upgrade, revision.Skipped)
	c.mustHaveKstatus(upgrade, status.CurrentStatus)
	if found == nil || found.UID != source.UID || !cmp.Equal(found, upgrade.Status.Source) {
		t.Errorf("the source was %+v, and is %+v in the end", found, upgrade.Status.Source)
	}
}

// look has an upgrade looked at, which it would be by itself in a while.
func (c *virtualization) look(upgrade *v1alpha1.ControllerRevisionUpgrade) {
	c.t.Helper()
	c.merge(upgrade, `{"spec":{"suspend":true}}`)
	c.merge(upgrade, `{"spec":{"suspend":false}}`)
}

// TestImpossibleUpgrade: the status says why and what to do, and the source stays as it is.
func TestImpossibleUpgrade(t *testing.T) {
	c := newVirtualization(t)
	f := fixture.Find("F1/VirtualMachineClusterInstancetype/labelled")
	data := func(old, with string) func(*appsv1.ControllerRevision) {
		return func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(strings.Replace(f.Data, old, with, 1)) }
	}
	guest := `"guest":"4Gi"`
	cases := map[string]struct {
		spoil   func(*appsv1.ControllerRevision)
		target  string
		reason  string
		message []string // what it has to say
	}{
		"another-owner": {
			spoil: func(r *appsv1.ControllerRevision) {
				r.OwnerReferences[0].APIVersion, r.OwnerReferences[0].Kind = "apps/v1", "StatefulSet"
			},
			reason: decision.ReasonUnexpectedOwner.Name, message: []string{"StatefulSet", "godwit revision fix"},
		},
		"another-family": {spoil: data(f.Data, `{"spec":{"template":{"$patch":"replace"}}}`), reason: decision.ReasonNotInFamily.Name, message: []string{"correct the reference"}},
		"corrupt":        {spoil: data(f.Data, `{"apiVersion":"","spec":"eyJjcHUi?"}`), reason: decision.ReasonUndecodable.Name, message: []string{"base64"}},
		"one-mebibyte":   {spoil: data(guest, `"guest":"`+strings.Repeat("9", 1<<20)+`"`), reason: decision.ReasonUndecodable.Name, message: []string{"more than the 524288"}},
		"deep":           {spoil: data(guest, `"guest":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)), reason: decision.ReasonUndecodable.Name, message: []string{"64 levels deep"}},
		"a-key-twice":    {spoil: data(guest, guest+","+guest), reason: decision.ReasonUndecodable.Name, message: []string{"spec.memory.guest", "twice"}},
		"not-served":     {target: "v1", reason: decision.ReasonTargetNotServed.Name, message: []string{"v1beta1", "does not serve v1"}},
	}
	sources, upgrades := map[string]*appsv1.ControllerRevision{}, map[string]*v1alpha1.ControllerRevisionUpgrade{}
	for name, test := range cases {
		vm, err := kubevirtcluster.Create(t.Context(), c.objects, fixture.VirtualMachine(c.namespace, name, fixture.InSpec|fixture.InStatus, f))
		if err != nil {
			t.Fatal(err)
		}
		sources[name] = f.Revision(vm)
		if test.spoil != nil {
			test.spoil(sources[name])
		}
		upgrades[name] = &v1alpha1.ControllerRevisionUpgrade{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name},
			Spec:       v1alpha1.ControllerRevisionUpgradeSpec{TargetName: sources[name].Name, TargetVersion: test.target},
		}
		for _, o := range []client.Object{sources[name], upgrades[name]} {
			if err := c.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.upgrade()
	for name, test := range cases {
		c.awaitUpgrade(upgrades[name], revision.Failed)
		c.mustHaveKstatus(upgrades[name], status.FailedStatus)
		stalled := meta.FindStatusCondition(upgrades[name].Status.Conditions, v1alpha1.ConditionStalled)
		if stalled.Reason != test.reason || slices.ContainsFunc(test.message, func(part string) bool { return !strings.Contains(stalled.Message, part) }) {
			t.Errorf("%s: %s: %.300s, want %s: %q", name, stalled.Reason, stalled.Message, test.reason, test.message)
		}
		if now := c.controllerRevision(sources[name].Name); now.ResourceVersion != sources[name].ResourceVersion {
			t.Errorf("%s: the source was touched", name)
		}
	}
}

// TestUpgradeWithoutAPermission: objects that the manager may not list could refer to any revision. The upgrade is Stalled, and names
// the permission.
func TestUpgradeWithoutAPermission(t *testing.T) {
	c := newVirtualization(t)
	upgrade := c.upgradeByName("blind", c.machine(fixture.Find("F2/VirtualMachinePreference/labelled")))
	_, user := c.serviceAccountOf(RevisionUpgrader, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "virtualmachinepools") })
	c.manageAs(user, "", EnableVariable+"=false", EnableRevisionUpgrader+"=true")
	c.awaitUpgrade(upgrade, revision.Analyzing)
	c.mustHaveKstatus(upgrade, status.FailedStatus)
	stalled := meta.FindStatusCondition(upgrade.Status.Conditions, v1alpha1.ConditionStalled)
	if stalled.Reason != decision.ReasonForbidden.Name || !strings.Contains(stalled.Message, "virtualmachinepools.pool.kubevirt.io is forbidden") ||
		!strings.Contains(stalled.Message, "godwit rbac --controller=revisionUpgrader") {
		t.Errorf("%s: %s", stalled.Reason, stalled.Message)
	}
	trigger := c.trigger("blind", v1alpha1.ControllerRevisionUpgradeTriggerSpec{})
	c.awaitTrigger(trigger, decision.ReasonForbidden.Name)
	c.mustHaveKstatus(trigger, status.FailedStatus)
}
