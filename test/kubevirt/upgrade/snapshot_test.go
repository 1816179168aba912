package upgrade_test

import (
	"net/http"
	"path"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/test/fault"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// mustRestore has KubeVirt restore a snapshot onto a machine, which is to refer to one
// revision then.
func (y *testNamespace) mustRestore(snapshot, vm, want string) {
	y.t.Helper()
	if err := (virtController{y}).restore(snapshot, vm); err != nil {
		y.t.Fatalf("KubeVirt can't restore %s onto %s: %v", snapshot, vm, err)
	}
	y.mustResolve()
	y.mustRefer(machines, vm, map[string]string{inSpec: want, inStatus: want})
}

// stop ends the instance of a machine.
func (y *testNamespace) stop(vm string) {
	y.t.Helper()
	y.change(machines, vm, "status", func(o map[string]any) {
		set("Stopped", "status", "printableStatus")(o)
		set(nil, "status", "created")(o)
	})
}

// TestRestoreAfterARunWithARunningMachine: the content of the snapshot is upgraded while
// the machine runs, so that the machine's new revision is made ahead of the machine.
func TestRestoreAfterARunWithARunningMachine(t *testing.T) {
	t.Parallel()
	y, _ := snapshotted(t)
	source, copied := instancetype.RevisionName("web"), instancetype.RevisionName("nightly")
	y.change(machines, "web", "status", set(true, "status", "created"))
	y.createRevision(fixture.StartRevision(y.read(machines, "web")))
	y.mustPlan(decision.Policy{}, source, decision.Deferred, decision.ReasonRunning)
	y.mustBe(y.run(decision.Policy{}), copied, revision.Retained, decision.ReasonRetained)
	y.mustRefer(machines, "web", map[string]string{inSpec: source, inStatus: source})
	y.mustRefer(contents, "vmsnapshot-content-nightly", map[string]string{contentPin: "nightly" + instancetypeTail})

	y.stop("web")
	y.mustRestore("nightly", "web", "web"+instancetypeTail)
	y.retire()
	if y.revisions()[source] != nil {
		t.Errorf("%s is left, and nothing refers to it", source)
	}
	y.mustRestore("nightly", "web", "web"+instancetypeTail)
}

// TestRestoreAfterASelectiveRun: a selector of machines takes the contents of their
// snapshots along. One of contents leaves the machine, and makes what a restore looks up.
func TestRestoreAfterASelectiveRun(t *testing.T) {
	t.Parallel()
	source := instancetype.RevisionName("web")
	for name, test := range map[string]struct {
		selected resourceAndName
		want     string
	}{
		"machines": {selected: resourceAndName{machines, "web"}, want: "web" + instancetypeTail},
		"contents": {selected: resourceAndName{contents, "vmsnapshot-content-nightly"}, want: source},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y, _ := snapshotted(t)
			y.change(test.selected.resource, test.selected.name, "", set("a", "metadata", "labels", "zone"))
			scope := revision.Scope{Namespace: y.namespace, Selector: labels.SelectorFromSet(labels.Set{"zone": "a"})}
			for range 2 {
				_, err := y.upgrader(decision.Policy{}).Run(t.Context(), scope, nil)
				y.must(nil, err)
				y.later(decision.DefaultRetention)
			}
			y.mustRefer(machines, "web", map[string]string{inSpec: test.want, inStatus: test.want})
			y.mustRefer(contents, "vmsnapshot-content-nightly", map[string]string{contentPin: "nightly" + instancetypeTail})
			y.mustRestore("nightly", "web", "web"+instancetypeTail)
			y.retire()
			y.mustHave("web"+instancetypeTail, "nightly"+instancetypeTail)
		})
	}
}

// TestRestoreAfterARollback of the machine's revision, of the snapshot's, and of both.
func TestRestoreAfterARollback(t *testing.T) {
	t.Parallel()
	source, copied := instancetype.RevisionName("web"), instancetype.RevisionName("nightly")
	for name, test := range map[string]struct {
		back []string
		want string
	}{
		"machine":  {back: []string{source}, want: "web" + instancetypeTail},
		"snapshot": {back: []string{copied}, want: source},
		"both":     {back: []string{copied, source}, want: source},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y, _ := snapshotted(t)
			y.run(decision.Policy{})
			for range 2 { // the second time, what a first look kept may go
				for _, one := range test.back {
					if r := y.advance(decision.Policy{}, revision.Request{Name: one, Rollback: true}); r.Phase != revision.RolledBack && r.Phase != revision.Skipped {
						t.Errorf("%s is %s (%s: %s)", one, r.Phase, r.Reason, r.Message)
					}
				}
			}
			y.mustResolve()
			y.mustRestore("nightly", "web", test.want)
		})
	}
}

// TestRollbackMeetsAnotherWriter: the rollback of a machine and that of its snapshot both
// write the machine's old revision, and another client may be faster than either. One pass
// ends both all the same.
func TestRollbackMeetsAnotherWriter(t *testing.T) {
	t.Parallel()
	source, copied := instancetype.RevisionName("web"), instancetype.RevisionName("nightly")
	oldRevision := func(method, at string) bool {
		return method == http.MethodPut && (path.Base(at) == source || path.Base(at) == copied)
	}
	for at := 0; ; at++ {
		y, _ := snapshotted(t)
		y.run(decision.Policy{})
		conflicts := 0
		w := &fault.Transport{At: at, After: y.referenceLog.ours}
		w.Fault = func(next http.RoundTripper, req *http.Request, _ func()) (*http.Response, error) {
			if oldRevision(req.Method, req.URL.Path) {
				conflicts++
				touched := []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`)
				y.must(y.core.AppsV1().ControllerRevisions(y.namespace).Patch(t.Context(), path.Base(req.URL.Path), types.MergePatchType, touched, metav1.PatchOptions{}))
			}
			return next.RoundTrip(req)
		}
		u, err := revision.New(w.Config(shared.Config()), kubevirt.Family{}, revision.Options{Clock: y.clock})
		y.must(u, err)
		results, err := u.Advance(t.Context(), y.namespace, []revision.Request{{Name: copied, Rollback: true}, {Name: source, Rollback: true}})
		y.must(results, err)
		for _, r := range results {
			if r.Phase != revision.RolledBack {
				t.Errorf("another writer before write %d of %q: %s is %s (%s: %s)", at, w.Writes(), r.Name, r.Phase, r.Reason, r.Message)
			}
		}
		if at >= len(w.Writes()) {
			return
		}
		if method, at, _ := strings.Cut(w.Writes()[at], " "); oldRevision(method, at) && conflicts == 0 {
			t.Errorf("%s met no conflict", at)
		}
	}
}

// TestRollbackOfASnapshotWhoseMachineGoesOn when the machine's old revision is gone: a
// restore would look that up, so that it is made of the snapshot's.
func TestRollbackOfASnapshotWhoseMachineGoesOn(t *testing.T) {
	t.Parallel()
	y, _ := snapshotted(t)
	source, copied := instancetype.RevisionName("web"), instancetype.RevisionName("nightly")
	y.run(decision.Policy{})
	y.removeRevision(source)
	if r := y.advance(decision.Policy{}, revision.Request{Name: copied, Rollback: true}); r.Phase != revision.RolledBack {
		t.Errorf("%s (%s: %s)", r.Phase, r.Reason, r.Message)
	}
	y.mustRefer(contents, "vmsnapshot-content-nightly", map[string]string{contentPin: copied})
	y.mustRestore("nightly", "web", source)
}

// TestRestoreThatWaitsForARevision: the content names a new revision and the machine has
// none of that name, as an interrupted upgrade or a deletion leaves it. KubeVirt retries
// the restore for ever, and nothing may be written to the machine meanwhile: what it
// waits for is made.
func TestRestoreThatWaitsForARevision(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		upgraded bool // the content names a revision at the target
		advance  bool // as the manager does
	}{
		"content at the target":          {upgraded: true},
		"content at the target, manager": {upgraded: true, advance: true},
		"content at an old version":      {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y, kubeVirt := snapshotted(t)
			waits := "web" + instancetypeTail
			if test.upgraded {
				y.change(machines, "web", "status", set(true, "status", "created"))
				y.run(decision.Policy{})
				y.stop("web")
				if y.revisions()[waits] != nil {
					y.removeRevision(waits)
				}
			} else {
				newer := fixture.Find("F3/VirtualMachineInstancetype/labelled")
				y.change(machines, "web", "", set(map[string]any{"name": newer.Object, "kind": newer.Kind}, "spec", "instancetype"))
				kubeVirt.capture("web", newer)
				y.removeRevision(instancetype.RevisionName("web"))
			}
			if err := kubeVirt.restore("nightly", "web"); err == nil {
				t.Fatal("KubeVirt restored what is not there")
			}
			before := y.read(machines, "web")
			switch {
			case test.advance:
				y.mustPlan(decision.Policy{}, waits, decision.Upgrade, decision.ReasonNeededForRestore)
				if r := y.advance(decision.Policy{}, revision.Request{Name: waits}); r.Phase != revision.Succeeded {
					t.Errorf("%s (%s: %s)", r.Phase, r.Reason, r.Message)
				}
				if r := y.advance(decision.Policy{}, revision.Request{Name: waits}); r.Phase != revision.Succeeded {
					t.Errorf("looked at again: %s (%s: %s)", r.Phase, r.Reason, r.Message)
				}
			case test.upgraded:
				y.mustBe(y.run(decision.Policy{}), waits, revision.Succeeded, decision.ReasonNeededForRestore)
			default:
				y.run(decision.Policy{})
			}
			if now := y.read(machines, "web"); now.GetResourceVersion() != before.GetResourceVersion() {
				t.Error("a machine that is being restored was written")
			}
			made := y.revisions()[waits]
			if made == nil {
				t.Fatalf("there is no %s", waits)
			}
			if owner := metav1.GetControllerOf(made); owner == nil || owner.UID != before.GetUID() {
				t.Errorf("%s belongs to %v", waits, owner)
			}
			y.mustRestore("nightly", "web", waits)
		})
	}
}

// TestRestoreOfAMachineThatIsGone makes it and its revisions: nothing is made ahead.
func TestRestoreOfAMachineThatIsGone(t *testing.T) {
	t.Parallel()
	y, _ := snapshotted(t)
	y.remove(machines, "web")
	y.removeRevision(instancetype.RevisionName("web"))
	y.run(decision.Policy{})
	y.later(decision.DefaultRetention)
	y.run(decision.Policy{})
	y.mustHave("nightly" + instancetypeTail)
	y.mustRestore("nightly", "web", "web"+instancetypeTail)
	y.mustRestore("nightly", "web", "web"+instancetypeTail)
}

// TestRestoreOntoAMachineOfAnotherInstancetype: the user has switched since the snapshot.
// No reference is left to the machine's old revision, and a restore looks it up.
func TestRestoreOntoAMachineOfAnotherInstancetype(t *testing.T) {
	t.Parallel()
	y, kubeVirt := snapshotted(t)
	newer := fixture.Find("F3/VirtualMachineInstancetype/labelled")
	y.change(machines, "web", "", set(map[string]any{"name": newer.Object, "kind": newer.Kind}, "spec", "instancetype"))
	kubeVirt.capture("web", newer)
	y.retire()
	y.mustHave(newer.RevisionName("web"), "web"+instancetypeTail, "nightly"+instancetypeTail)
	y.mustRestore("nightly", "web", "web"+instancetypeTail)
}

// TestRestoreWithLongNames: what KubeVirt computes has no hash. A new name is cut so that
// the name with the machine's in the place of the snapshot's fits, too.
func TestRestoreWithLongNames(t *testing.T) {
	t.Parallel()
	object := strings.Repeat("o", 74)
	for name, test := range map[string]struct{ machine, snapshot string }{
		"machine longer":  {machine: strings.Repeat("m", 125) + ".web", snapshot: "nightly"},
		"snapshot longer": {machine: "web", snapshot: strings.Repeat("n", 121) + ".nightly"},
		"both long":       {machine: strings.Repeat("m", 125) + ".web", snapshot: strings.Repeat("n", 125) + ".web"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newNamespace(t)
			source := test.machine + "-" + object + "-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-12345678"
			vm := fixture.VirtualMachine(y.namespace, test.machine, both)
			set(map[string]any{"name": object, "revisionName": source}, "spec", "instancetype")(vm.Object)
			set(map[string]any{"name": object, "controllerRevisionRef": map[string]any{"name": source}}, "status", "instancetypeRef")(vm.Object)
			vm = y.create(vm)
			r := instancetype.Revision(vm)
			r.Name, r.Labels = source, nil
			r.Data.Raw = []byte(strings.NewReplacer(`"u1.medium"`, `"`+object+`"`, `"generation":1`, `"generation":12345678`).Replace(instancetype.Data))
			y.createRevision(r)
			virtController{y}.snapshot(test.machine, test.snapshot)
			y.change(machines, test.machine, "status", set(true, "status", "created"))
			y.run(decision.Policy{})
			content := y.refers(contents, "vmsnapshot-content-"+test.snapshot)[contentPin]
			if !strings.Contains(content, "-v1beta1-") && content == strings.Replace(source, test.machine, test.snapshot, 1) {
				t.Errorf("the content refers to the old %s", content)
			}
			restored := strings.Replace(content, test.snapshot, test.machine, 1)
			y.stop(test.machine)
			y.mustRestore(test.snapshot, test.machine, restored)
			y.retire()
			y.mustRestore(test.snapshot, test.machine, restored)
		})
	}
}

// TestSnapshotThatWaitsIsDeleted, which is what a user may do about NeededForRestore: the
// machine's old revision goes then.
func TestSnapshotThatWaitsIsDeleted(t *testing.T) {
	t.Parallel()
	y, _ := snapshotted(t)
	source := instancetype.RevisionName("web")
	y.change(contents, "vmsnapshot-content-nightly", "status", set(false, "status", "readyToUse"))
	y.mustBe(y.retire(), source, revision.InUse, decision.ReasonNeededForRestore)
	y.remove(contents, "vmsnapshot-content-nightly")
	y.removeRevision(instancetype.RevisionName("nightly")) // as the garbage collector does
	y.mustBe(y.retire(), source, revision.Succeeded, nil)
	y.mustHave("web" + instancetypeTail)
}

// TestSnapshotInConflictIsReplaced, which is what a user may do where another object
// needs the revision in the way: the name of another snapshot's is none that is taken.
func TestSnapshotInConflictIsReplaced(t *testing.T) {
	t.Parallel()
	y, kubeVirt := snapshotted(t)
	other := fixture.Find("F3/VirtualMachineInstancetype/labelled").Revision(y.read(machines, "web"))
	other.Name = "web" + instancetypeTail
	y.createRevision(other)
	copied := instancetype.RevisionName("nightly")
	y.mustBe(y.run(decision.Policy{}), copied, revision.Failed, decision.ReasonRestoreConflict)
	kubeVirt.snapshot("web", "weekly")
	y.remove(contents, "vmsnapshot-content-nightly")
	y.removeRevision(copied)
	y.removeRevision("nightly" + instancetypeTail)
	y.retire()
	y.mustRestore("weekly", "web", y.refers(machines, "web")[inStatus])
}

// TestRestoreWouldReplaceARevision: the name that a restore looks up is there and holds
// something else. KubeVirt would delete it, whatever refers to it: the content stays where it is.
func TestRestoreWouldReplaceARevision(t *testing.T) {
	t.Parallel()
	y, _ := snapshotted(t)
	source, copied, taken := instancetype.RevisionName("web"), instancetype.RevisionName("nightly"), "web"+instancetypeTail
	vm := y.read(machines, "web")
	other := fixture.Find("F3/VirtualMachineInstancetype/labelled").Revision(vm)
	other.Name = taken
	y.createRevision(other)
	for range 2 {
		results := y.run(decision.Policy{})
		y.later(decision.DefaultRetention)
		held := y.mustBe(results, copied, revision.Failed, decision.ReasonRestoreConflict)
		if !strings.Contains(held.Message, taken) || !strings.Contains(held.Message, "vmsnapshot-content-nightly") {
			t.Errorf("%q does not say what is in the way of what", held.Message)
		}
		y.mustBe(results, source, revision.InUse, decision.ReasonNeededForRestore)
	}
	y.mustRefer(contents, "vmsnapshot-content-nightly", map[string]string{contentPin: copied})
	y.removeRevision(taken) // which is what the remedy says
	y.run(decision.Policy{})
	y.mustRestore("nightly", "web", taken)
}

type resourceAndName struct {
	resource schema.GroupVersionResource
	name     string
}
