package upgrade_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/test/fault"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
	"github.com/godwit-dev/godwit/walk"
)

// due is a testNamespace in which the retention of so many sources is over, one for each of the
// machines vm-0, vm-1, and so on.
func due(t *testing.T, n int) *testNamespace {
	t.Helper()
	y := newNamespace(t)
	for i := range n {
		y.machine(fmt.Sprintf("vm-%d", i), fixture.InSpec, instancetype)
	}
	y.run(decision.Policy{})
	y.later(decision.DefaultRetention)
	return y
}

// paced is an upgrader that is slow, and before whose first write something happens.
func (y *testNamespace) paced(l walk.Limits, w *fault.Transport, first func()) *revision.Upgrader {
	y.t.Helper()
	var once sync.Once
	w.Before = func(int) { once.Do(first) }
	if w.After == nil {
		w.After = y.referenceLog.ours
	}
	u, err := revision.New(w.Config(shared.Config()), kubevirt.Family{}, revision.Options{Clock: y.clock, Limiter: walk.NewLimiter(l)})
	y.must(u, err)
	return u
}

// names has a new machine name a revision.
func (y *testNamespace) names(vm, name string, running bool) {
	y.t.Helper()
	late := fixture.VirtualMachine(y.namespace, vm, fixture.InSpec, instancetype)
	set(name, "spec", "instancetype", "revisionName")(late.Object)
	if running {
		late = fixture.Running(late)
	}
	y.create(late)
}

// TestNamedWhileSourcesAreRemoved: the removal has begun, at a low rate, when new
// machines and a snapshot's content name every old revision. A scan of a moment ago does
// not know them; the one after the removal does, and each reference resolves in the end.
func TestNamedWhileSourcesAreRemoved(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason  string
		running bool
		want    revision.Phase
		names   string
	}{
		"by what may be written": {"it is repointed", false, revision.Succeeded, "vm-%d" + instancetypeTail},
		"by what runs":           {"the policy leaves it alone, and the revision is made again", true, revision.InUse, "vm-%d-u1.medium-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 4
			y := due(t, n)
			w := &fault.Transport{After: y.referenceLog.others} // what another client breaks by naming what is about to go is repaired, and not prevented
			u := y.paced(walk.Limits{MaxWritesPerSecond: 5}, w, func() {
				for i := range n {
					y.names(fmt.Sprintf("late-%d", i), instancetype.RevisionName(fmt.Sprintf("vm-%d", i)), test.running)
				}
				content := fixture.SnapshotContent(y.read(machines, "vm-0"), "late", fixture.InSpec)
				set(instancetype.RevisionName("vm-0"), "spec", "source", "virtualMachine", "spec", "instancetype", "revisionName")(content.Object)
				y.create(content)
			})
			results := y.pass(u)
			y.mustResolve()
			for i := range n {
				source := instancetype.RevisionName(fmt.Sprintf("vm-%d", i))
				if r := results[source]; r.Phase != test.want {
					t.Errorf("%s is %s (%s: %s), want %s: %s", source, r.Phase, r.Reason, r.Message, test.want, test.reason)
				}
				y.mustRefer(machines, fmt.Sprintf("late-%d", i), map[string]string{inSpec: fmt.Sprintf(test.names, i)})
			}
		})
	}
}

// TestMadeAgainWhileSourcesAreRemoved: a restore makes a source again that was just deleted, of other data, and a machine that
// names it. The name means the new revision from then on.
func TestMadeAgainWhileSourcesAreRemoved(t *testing.T) {
	t.Parallel()
	y := due(t, 2)
	source := instancetype.RevisionName("vm-0")
	again := y.revisions()[source]
	again.ResourceVersion, again.UID, again.Annotations = "", "", nil
	again.Data.Raw = guests.ReplaceAll(again.Data.Raw, []byte(restored))
	var once sync.Once
	w := &fault.Transport{After: func(*http.Request) {
		if _, found := y.revisions()[source]; !found {
			once.Do(func() {
				y.createRevision(again)
				y.names("late", source, false)
			})
		}
	}}
	y.mustBe(y.pass(y.paced(walk.Limits{MaxInFlight: 1}, w, func() {})), source, revision.InUse, decision.ReasonReferenced)
	y.mustRefer(machines, "late", map[string]string{inSpec: source})
	y.mustBe(y.run(decision.Policy{}), source, revision.Retained, decision.ReasonRetained)
	y.mustResolve()
	if data := string(y.revisions()[y.refers(machines, "late")[inSpec]].Data.Raw); !strings.Contains(data, restored) {
		t.Errorf("the machine refers to what holds %s, want %s", data, restored)
	}
}

// TestSourceIsNotRemovedByAnOldScan: a machine names a source that is still to be
// removed, and the rate is so low that the scan is a minute old when its turn comes.
func TestSourceIsNotRemovedByAnOldScan(t *testing.T) {
	t.Parallel()
	y := due(t, 2)
	source := instancetype.RevisionName("vm-1")
	results := y.pass(y.paced(walk.Limits{MaxInFlight: 1}, &fault.Transport{}, func() {
		y.names("late", source, true)
		y.later(time.Minute)
	}))
	y.mustBe(results, instancetype.RevisionName("vm-0"), revision.Succeeded, nil)
	y.mustBe(results, source, revision.InUse, decision.ReasonReferenced)
	y.mustResolve()
}

// TestLastReferrersAreReadBeforeARemoval: the scan is a moment old, and GitOps has just
// reverted the machine that the source belonged to.
func TestLastReferrersAreReadBeforeARemoval(t *testing.T) {
	t.Parallel()
	y := due(t, 2)
	source := instancetype.RevisionName("vm-1")
	results := y.pass(y.paced(walk.Limits{MaxInFlight: 1}, &fault.Transport{}, func() {
		y.change(machines, "vm-1", "", set(source, "spec", "instancetype", "revisionName"))
	}))
	y.mustBe(results, source, revision.InUse, decision.ReasonReferenced)
	y.mustResolve()
	y.mustBe(y.run(decision.Policy{}), source, revision.Retained, decision.ReasonRetained)
}

// TestOwnerIsReadBeforeARemoval: the scan is a moment old, and the machine that owns the
// source is being restored by now.
func TestOwnerIsReadBeforeARemoval(t *testing.T) {
	t.Parallel()
	y := due(t, 2)
	source := instancetype.RevisionName("vm-1")
	results := y.pass(y.paced(walk.Limits{MaxInFlight: 1}, &fault.Transport{}, func() {
		y.change(machines, "vm-1", "status", set("back", "status", "restoreInProgress"))
	}))
	y.mustBe(results, source, revision.Retained, decision.ReasonReferrerNotReady)
	y.change(machines, "vm-1", "status", set(nil, "status", "restoreInProgress"))
	y.mustBe(y.run(decision.Policy{}), source, revision.Succeeded, nil)
}

// TestRestoreKeepsWhatItMayRead: a VirtualMachineRestore that is not complete may still
// read the revisions of its snapshot and of its target, also those that another machine
// owns and the target shares.
func TestRestoreKeepsWhatItMayRead(t *testing.T) {
	t.Parallel()
	restore := func(y *testNamespace, snapshot, vm string) *unstructured.Unstructured {
		return y.create(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineRestore",
			"metadata": map[string]any{"namespace": y.namespace, "name": "back"},
			"spec": map[string]any{
				"virtualMachineSnapshotName": snapshot,
				"target":                     map[string]any{"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": vm},
			},
		}})
	}
	for name, test := range map[string]struct {
		reason string
		begin  func(*testNamespace)
		end    func(*testNamespace)
		kept   string
	}{
		"of the snapshot": {
			reason: "the restore copies the snapshot's revisions to a machine that is not there yet",
			begin:  func(y *testNamespace) { restore(y, "nightly", "another") },
			end:    func(y *testNamespace) { y.change(restores, "back", "status", set(true, "status", "complete")) },
			kept:   instancetype.RevisionName("nightly"),
		},
		"of the target": {
			reason: "the restore compares the target's revisions with the snapshot's",
			begin:  func(y *testNamespace) { restore(y, "unknown", "web") },
			end:    func(y *testNamespace) { y.remove(restores, "back") },
			kept:   instancetype.RevisionName("web"),
		},
		"of a machine that shares it": {
			reason: "its owner stands, and the other machine that named it is being restored",
			begin: func(y *testNamespace) {
				y.change(machines, "shares", "status", set("back", "status", "restoreInProgress"))
			},
			end: func(y *testNamespace) {
				y.change(machines, "shares", "status", set(nil, "status", "restoreInProgress"))
			},
			kept: instancetype.RevisionName("web"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y, _ := snapshotted(t)
			y.names("shares", instancetype.RevisionName("web"), false)
			y.run(decision.Policy{})
			y.later(decision.DefaultRetention)
			test.begin(y)
			y.mustBe(y.run(decision.Policy{}), test.kept, revision.Retained, decision.ReasonReferrerNotReady)
			test.end(y)
			y.mustBe(y.run(decision.Policy{}), test.kept, revision.Succeeded, nil)
		})
	}
}

// TestReferenceThatCannotBeRepointed to a revision that is gone is an outcome of its
// own, which names the referrer. A machine that runs is no obstacle: KubeVirt can't stop what
// runs with a revision that it can't find.
func TestReferenceThatCannotBeRepointed(t *testing.T) {
	t.Parallel()
	y := due(t, 1)
	y.run(decision.Policy{})
	source := instancetype.RevisionName("vm-0")
	y.names("late", source, true)
	y.mustBe(y.run(decision.Policy{}), source, revision.Succeeded, nil)
	y.mustResolve()
	y.names("copied", source, true)
	y.change(machines, "copied", "status", set("nightly", "status", "snapshotInProgress"))
	r := y.mustBe(y.run(decision.Policy{OnRunning: decision.Hold}), source, revision.Failed, decision.ReasonDangling)
	for _, word := range []string{"VirtualMachine copied", inSpec, "vm-0" + instancetypeTail, "nightly is being taken of it"} {
		mustSay(t, r.Message, word)
	}
	y.change(machines, "copied", "status", set(nil, "status", "snapshotInProgress"))
	y.mustBe(y.run(decision.Policy{}), source, revision.Succeeded, nil)
	y.mustResolve()
}
