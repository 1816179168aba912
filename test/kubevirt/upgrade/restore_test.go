package upgrade_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/test/fault"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

const contentPin = "/spec/source/virtualMachine/spec/instancetype/revisionName"

// TestSnapshotFromBeforeRestoredAfter: the snapshot was taken before the upgrade, and
// is restored when no source is left. It was upgraded along, so that KubeVirt computes
// the name of a revision that is there.
func TestSnapshotFromBeforeRestoredAfter(t *testing.T) {
	t.Parallel()
	y, kubeVirt := snapshotted(t)
	y.retire()
	y.mustHave("web"+instancetypeTail, "nightly"+instancetypeTail)
	y.mustRefer(contents, "vmsnapshot-content-nightly", map[string]string{contentPin: "nightly" + instancetypeTail})
	y.must(nil, kubeVirt.restore("nightly", "web"))
	y.mustResolve()
	y.mustRefer(machines, "web", map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail})
	y.mustHave("web"+instancetypeTail, "nightly"+instancetypeTail)
}

// snapshotted is a testNamespace with a machine and a snapshot of it, both at v1alpha2.
func snapshotted(t *testing.T) (*testNamespace, virtController) {
	y := newNamespace(t)
	y.machine("web", both, instancetype)
	kubeVirt := virtController{y}
	kubeVirt.snapshot("web", "nightly")
	return y, kubeVirt
}

// TestSnapshotFromBeforeThatWasNotUpgraded: its content names an old revision still, so
// that a restore looks up the machine's old one. That stays for as long, and goes when
// the content is upgraded.
func TestSnapshotFromBeforeThatWasNotUpgraded(t *testing.T) {
	t.Parallel()
	y, kubeVirt := snapshotted(t)
	ready := func(ready bool) {
		y.change(contents, "vmsnapshot-content-nightly", "status", set(ready, "status", "readyToUse"))
	}
	ready(false)
	source, copied := instancetype.RevisionName("web"), instancetype.RevisionName("nightly")
	if i := y.mustPlan(decision.Policy{}, copied, decision.Deferred, decision.ReasonReferrerNotReady); !strings.Contains(i.Message, "vmsnapshot-content-nightly") {
		t.Errorf("%q does not say what is to be waited for", i.Message)
	}
	held := y.mustBe(y.retire(), source, revision.InUse, decision.ReasonNeededForRestore)
	for _, part := range []string{"vmsnapshot-content-nightly", "VirtualMachine web", source} {
		if !strings.Contains(held.Message, part) {
			t.Errorf("%q does not say %s", held.Message, part)
		}
	}
	y.mustHave(source, "web"+instancetypeTail, copied)
	ready(true)
	y.must(nil, kubeVirt.restore("nightly", "web"))
	y.mustResolve()
	y.mustRefer(machines, "web", map[string]string{inSpec: source, inStatus: source})

	y.retire()
	y.mustHave("web"+instancetypeTail, "nightly"+instancetypeTail)
	y.mustRefer(machines, "web", map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail})
	y.must(nil, kubeVirt.restore("nightly", "web"))
	y.mustResolve()
}

// TestSnapshotThatNamesTheMachinesRevision, as no KubeVirt writes it, keeps that
// revision like anybody else: it is led along.
func TestSnapshotThatNamesTheMachinesRevision(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	vm := y.machine("web", both, instancetype)
	y.create(fixture.Snapshot(vm, "nightly"))
	content := fixture.SnapshotContent(vm, "nightly", fixture.InSpec)
	set(false, "status", "readyToUse")(content.Object)
	y.create(content)
	y.mustPlan(decision.Policy{}, instancetype.RevisionName("web"), decision.Deferred, decision.ReasonReferrerNotReady)
	y.change(contents, "vmsnapshot-content-nightly", "status", set(true, "status", "readyToUse"))
	y.retire()
	y.mustHave("web" + instancetypeTail)
	for path, name := range y.refers(contents, "vmsnapshot-content-nightly") {
		if name != "web"+instancetypeTail {
			t.Errorf("%s is %s", path, name)
		}
	}
	y.mustResolve()
}

// TestMachineThatRefersToASnapshotsRevision: the replacement belongs to the snapshot, as
// the source does.
func TestMachineThatRefersToASnapshotsRevision(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	vm := y.create(fixture.VirtualMachine(y.namespace, "web", fixture.InSpec, instancetype))
	snapshot := y.create(fixture.Snapshot(vm, "nightly"))
	y.createRevisions(snapshot, instancetype)
	y.change(machines, "web", "", set(instancetype.RevisionName("nightly"), "spec", "instancetype", "revisionName"))
	y.retire()
	y.mustRefer(machines, "web", map[string]string{inSpec: "nightly" + instancetypeTail})
	if owner := metav1.GetControllerOf(y.revisions()["nightly"+instancetypeTail]); owner == nil || owner.UID != snapshot.GetUID() {
		t.Errorf("it belongs to %v", owner)
	}
	y.mustResolve()
}

// TestLateRestoreFromABackup: a backup brings back a machine and its old revisions
// without their owners, long after everything was upgraded. The replacement belongs to
// the machine that refers to it and whose name it begins with.
func TestLateRestoreFromABackup(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", both, instancetype)
	y.retire()
	y.remove(machines, "web")
	y.removeRevision("web" + instancetypeTail)

	vm := y.create(fixture.VirtualMachine(y.namespace, "web", both, instancetype))
	restored := instancetype.Revision(vm)
	restored.OwnerReferences = nil
	y.createRevision(restored)
	source := instancetype.RevisionName("web")
	y.mustPlan(decision.Policy{}, source, decision.Upgrade, nil)
	y.mustBe(y.run(decision.Policy{}), source, revision.Retained, decision.ReasonRetained)
	want := *metav1.NewControllerRef(vm, vm.GroupVersionKind())
	if owner := metav1.GetControllerOf(y.revisions()["web"+instancetypeTail]); owner == nil || owner.UID != want.UID || owner.Kind != want.Kind || owner.APIVersion != want.APIVersion {
		t.Errorf("it belongs to %v, want %v", owner, want)
	}
	y.retire()
	y.mustHave("web" + instancetypeTail)
	y.mustResolve()
}

// TestRevisionWithoutAnOwner and that two refer to, neither of which it is called
// after, has no owner to give to a replacement.
func TestRevisionWithoutAnOwner(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	vm := y.create(fixture.VirtualMachine(y.namespace, "web", fixture.InSpec, instancetype))
	r := instancetype.Revision(vm)
	r.OwnerReferences, r.Name = nil, "other-u1.medium-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1"
	y.createRevision(r)
	y.change(machines, "web", "", set(r.Name, "spec", "instancetype", "revisionName"))
	y.mustPlan(decision.Policy{}, r.Name, decision.Blocked, decision.ReasonNoController)
	y.run(decision.Policy{})
	y.mustHave(r.Name)
}

// TestMachineThatComesBackWithAnOldName when the source is gone: the replacement says
// what it comes from, and the machine is led there.
func TestMachineThatComesBackWithAnOldName(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", both, instancetype)
	y.retire()
	source := instancetype.RevisionName("web")
	y.change(machines, "web", "", set(source, "spec", "instancetype", "revisionName"))
	y.mustPlan(decision.Policy{}, source, decision.Upgrade, decision.ReasonSourceGone)
	y.mustBe(y.run(decision.Policy{}), source, revision.Succeeded, nil)
	y.mustRefer(machines, "web", map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail})
	y.mustResolve()
}

// TestReplacementIsDeleted while its source is kept: it is made again, for those who
// refer to it, and the source is not superseded by what is gone.
func TestReplacementIsDeleted(t *testing.T) {
	t.Parallel()
	for _, f := range []fixture.Fixture{instancetype, fixture.Find("F0/VirtualMachineClusterInstancetype/empty")} {
		y := newNamespace(t)
		y.machine("web", both, f)
		y.run(decision.Policy{})
		y.later(2 * decision.DefaultRetention)
		y.removeRevision("web" + instancetypeTail)
		y.mustPlan(decision.Policy{}, "web"+instancetypeTail, decision.Deferred, decision.ReasonSourceGone)
		y.run(decision.Policy{})
		y.mustResolve()
		y.mustRefer(machines, "web", map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail})
	}
}

// TestTwoSourcesOfOneReplacement: a machine's status and spec name revisions of one
// object in two forms. Both end in the same revision, and the second source is not
// forgotten though the replacement says that it comes from the first: wherever the
// process is killed.
func TestTwoSourcesOfOneReplacement(t *testing.T) {
	t.Parallel()
	for at := 0; ; at++ {
		y := newNamespace(t)
		vm := y.machine("web", both, instancetype)
		second := instancetype.Revision(vm)
		second.Name = "web-u1.medium-v1alpha2-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1"
		y.createRevision(second)
		y.change(machines, "web", "status", set(second.Name, "status", "instancetypeRef", "controllerRevisionRef", "name"))
		w := &fault.Transport{At: at, Fault: fault.All()["killed before the write"]}
		u := y.disturbed(w, decision.Policy{})
		w.Run(t.Context(), func(ctx context.Context) { _, _ = u.Run(ctx, revision.Scope{Namespace: y.namespace}, nil) })
		y.retire()
		y.mustRefer(machines, "web", map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail})
		y.mustHave("web" + instancetypeTail)
		y.mustResolve()
		for _, old := range []string{instancetype.RevisionName("web"), second.Name} { // as a restore brings them back
			y.change(machines, "web", "status", set(old, "status", "instancetypeRef", "controllerRevisionRef", "name"))
			y.retire()
			y.mustRefer(machines, "web", map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail})
		}
		if at >= len(w.Writes()) || t.Failed() {
			return
		}
	}
}

// TestPool: the template is led like a machine's spec, and what the pool keeps of its
// own past does not hold a source.
func TestPool(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	vm := y.machine("web", both, instancetype)
	pool := y.create(fixture.Pool(vm, "fleet"))
	past := fixture.StartRevision(vm)
	past.Name, past.OwnerReferences = "fleet-1", []metav1.OwnerReference{*metav1.NewControllerRef(pool, pool.GroupVersionKind())}
	past.Data.Raw = []byte(`{"virtualMachineTemplate":{"spec":{"instancetype":{"name":"u1.medium","revisionName":"` + instancetype.RevisionName("web") + `"}}}}`)
	y.createRevision(past)
	y.retire()
	y.mustRefer(pools, "fleet", map[string]string{"/spec/virtualMachineTemplate/spec/instancetype/revisionName": "web" + instancetypeTail})
	y.mustHave("web"+instancetypeTail, "fleet-1")
	y.mustResolve()
}

// TestLongNames: the machine's name and the instance type's leave no room for a version
// in the revision's name, and the instance type's is too long for a label.
func TestLongNames(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	machine, object := strings.Repeat("m", 125)+".web", strings.Repeat("o", 74)
	vm := fixture.VirtualMachine(y.namespace, machine, fixture.InStatus)
	name := machine + "-" + object + "-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-12345678"
	set(map[string]any{"name": object}, "spec", "instancetype")(vm.Object)
	set(map[string]any{"name": object, "controllerRevisionRef": map[string]any{"name": name}}, "status", "instancetypeRef")(vm.Object)
	vm = y.create(vm)
	r := instancetype.Revision(vm)
	r.Name, r.Labels = name, nil
	r.Data.Raw = []byte(strings.NewReplacer(`"u1.medium"`, `"`+object+`"`, `"generation":1`, `"generation":12345678`).Replace(instancetype.Data))
	y.createRevision(r)
	result := y.mustBe(y.run(decision.Policy{}), name, revision.Retained, decision.ReasonRetained)
	y.mustRefer(machines, machine, map[string]string{inStatus: result.Replacement})
	if n := len(result.Replacement); n > 253 || !strings.HasPrefix(result.Replacement, machine+"-"+object+"-") {
		t.Errorf("the replacement is called %s, of %d characters", result.Replacement, n)
	}
	labels := y.revisions()[result.Replacement].Labels
	if label := labels["instancetype.kubevirt.io/object-name"]; len(label) != 63 || !strings.HasPrefix(label, strings.Repeat("o", 54)) {
		t.Errorf("the label is %s", label)
	}
	y.retire()
	y.mustHave(result.Replacement)
	y.mustResolve()
}

// TestRollback repoints all references to the source until it is deleted, and is refused then.
func TestRollback(t *testing.T) {
	t.Parallel()
	y, _ := snapshotted(t)
	source := instancetype.RevisionName("web")
	y.run(decision.Policy{})
	if r := y.advance(decision.Policy{}, revision.Request{Name: source, Rollback: true}); r.Phase != revision.RolledBack {
		t.Errorf("%s (%s: %s)", r.Phase, r.Reason, r.Message)
	}
	y.mustRefer(machines, "web", map[string]string{inSpec: source, inStatus: source})
	// The snapshot's content is where it was, and a restore of it looks the machine's up.
	y.mustHave(source, "web"+instancetypeTail, instancetype.RevisionName("nightly"), "nightly"+instancetypeTail)
	y.mustResolve()
	y.retire()
	if r := y.advance(decision.Policy{}, revision.Request{Name: source, Rollback: true}); r.Phase != revision.Failed || r.Reason != decision.ReasonIrreversible {
		t.Errorf("%s (%s: %s)", r.Phase, r.Reason, r.Message)
	}
	y.mustResolve()
}

// TestSourceThatOnlyReferencesExplain: a spec by itself does not say of which kind it is,
// and once all references are repointed no reference says so. It is kept, rolled back to and
// removed all the same.
func TestSourceThatOnlyReferencesExplain(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	bare := fixture.Find("F0/VirtualMachineClusterInstancetype/empty")
	y.machine("web", both, bare)
	source, replacement := bare.RevisionName("web"), "web"+instancetypeTail
	back := revision.Request{Name: source, Rollback: true}
	kept := func() {
		t.Helper()
		y.mustBe(y.run(decision.Policy{}), source, revision.Retained, decision.ReasonRetained)
		y.mustHave(source, replacement)
	}
	kept()
	if i := y.mustPlan(decision.Policy{}, source, decision.Upgrade, decision.ReasonRetained); i.Version != "v1alpha1" || i.Replacement != replacement {
		t.Errorf("the plan does not say what holds v1alpha1, nor who took over: %+v", i)
	}
	y.later(decision.DefaultRetention - time.Second)
	kept()
	if r := y.advance(decision.Policy{}, back); r.Phase != revision.RolledBack {
		t.Errorf("%s (%s: %s)", r.Phase, r.Reason, r.Message)
	}
	y.mustRefer(machines, "web", map[string]string{inSpec: source, inStatus: source})
	y.mustHave(source, replacement)
	y.mustPlan(decision.Policy{}, source, decision.Upgrade, decision.ReasonRolledBack)
	kept()
	y.later(decision.DefaultRetention)
	y.mustBe(y.run(decision.Policy{}), source, revision.Succeeded, nil)
	y.mustHave(replacement)
	y.mustRefer(machines, "web", map[string]string{inSpec: replacement, inStatus: replacement})
	if r := y.advance(decision.Policy{}, back); r.Phase != revision.Failed || r.Reason != decision.ReasonIrreversible {
		t.Errorf("%s (%s: %s)", r.Phase, r.Reason, r.Message)
	}
}

// TestMachineAlreadyTerminating keeps what it refers to until it is gone.
func TestMachineAlreadyTerminating(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	vm := fixture.VirtualMachine(y.namespace, "web", both, instancetype)
	vm.SetFinalizers([]string{"example.com/keep"})
	vm = y.create(vm)
	y.createRevisions(vm, instancetype)
	y.remove(machines, "web")
	y.retire()
	y.mustResolve()
	y.mustRefer(machines, "web", map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail})
	y.must(y.dynamic.Resource(machines).Namespace(y.namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
	y.run(decision.Policy{})
	y.mustHave("web" + instancetypeTail) // which the garbage collector takes
}
