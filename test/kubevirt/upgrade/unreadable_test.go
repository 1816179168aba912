package upgrade_test

import (
	"slices"
	"testing"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// later is a control plane with the CRDs of a KubeVirt that reads v1beta1 alone.
func later(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	plane := controlplane.Options{}.StartFor(t)
	if err := cluster.InstallLater(t.Context(), plane.Config()); err != nil {
		t.Fatal(err)
	}
	return plane
}

// TestKubeVirtThatCannotRead the revision of a machine that runs: it can't stop the machine,
// so that to wait for that would have no end. The policy is to wait, and the run repoints.
// What KubeVirt can read waits, and no rollback leads back to what it can't.
func TestKubeVirtThatCannotRead(t *testing.T) {
	t.Parallel()
	y := newNamespaceOn(t, later(t))
	kubeVirt := virtController{y}
	source := instancetype.RevisionName("web")
	vm := y.create(fixture.Running(fixture.VirtualMachine(y.namespace, "web", both, instancetype)))
	y.createRevisions(vm, instancetype)
	y.createRevision(fixture.StartRevision(vm))
	if err := kubeVirt.stop("web", "v1beta1"); err == nil {
		t.Fatal("KubeVirt stops a machine whose revision it can't read")
	}
	i := y.mustPlan(decision.Policy{}, source, decision.Upgrade, decision.ReasonUnreadable)
	for _, word := range []string{"VirtualMachine web is running", "KubeVirt v1.7 or later can't read at v1alpha2"} {
		mustSay(t, i.Message, word)
	}
	if i.AtRisk {
		t.Error("KubeVirt is said to delete what it can't read")
	}
	y.mustBe(y.run(decision.Policy{}), source, revision.InUse, decision.ReasonReferenced) // by the start revision
	y.mustRefer(machines, "web", map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail})
	if err := kubeVirt.stop("web", "v1beta1"); err != nil {
		t.Errorf("after the run: %v", err)
	}
	y.mustBe(y.run(decision.Policy{}), source, revision.Retained, decision.ReasonRetained)

	before := y.revisions()[source].ResourceVersion
	r := y.advance(decision.Policy{}, revision.Request{Name: source, Rollback: true})
	if r.Phase != revision.Failed || r.Reason != decision.ReasonUnreadableAfterwards || y.revisions()[source].ResourceVersion != before {
		t.Errorf("a rollback is %s (%s: %s), or has written", r.Phase, r.Reason, r.Message)
	}
	mustSay(t, r.Message, "KubeVirt v1.7 or later reads only v1beta1")
	y.mustRefer(machines, "web", map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail})
}

// TestAtRiskAndShared: at risk are the revisions that KubeVirt upgrades itself, and deletes although a machine's
// spec names them: those without the label of its newest version. What a status alone names,
// it repoints. Shared are those that a machine names and does not own.
func TestAtRiskAndShared(t *testing.T) {
	t.Parallel()
	current, unlabelled := fixture.Find("F3/VirtualMachineClusterInstancetype/labelled"), fixture.Find("F3/VirtualMachineClusterInstancetype/unlabelled")
	y := newNamespace(t)
	want := map[string]bool{}
	for vm, one := range map[string]struct {
		in     fixture.Fields
		of     fixture.Fixture
		atRisk bool
	}{
		"old": {both, instancetype, true}, "unlabelled": {both, unlabelled, true}, "current": {both, current, false}, "status": {fixture.InStatus, instancetype, false},
	} {
		y.machine(vm, one.in, one.of)
		want[one.of.RevisionName(vm)] = one.atRisk
	}
	y.names("clone", instancetype.RevisionName("old"), false)
	for _, i := range y.plan(decision.Policy{}) {
		var sharedBy []string
		if i.Name == instancetype.RevisionName("old") {
			sharedBy = []string{"VirtualMachine/clone"}
		}
		if !slices.Equal(i.SharedBy, sharedBy) {
			t.Errorf("%s is shared by %v, want %v", i.Name, i.SharedBy, sharedBy)
		}
		if i.AtRisk != want[i.Name] {
			t.Errorf("%s is at risk: %t, want %t", i.Name, i.AtRisk, want[i.Name])
		}
	}
	y.run(decision.Policy{})
	for _, i := range y.plan(decision.Policy{}) {
		if i.AtRisk {
			t.Errorf("after a run, %s is at risk", i.Name)
		}
	}
}
