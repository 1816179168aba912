package upgrade_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/correction"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/test/fault"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// TestRaceWithKubeVirt: KubeVirt takes the three steps of its own upgrade of the same
// revision, each before any of our writes or after all of them. Whichever wins, in the
// end the machine refers to one revision, which can be read, and no other is left. We
// break no reference on the way; KubeVirt does, to a machine that pins its revision,
// and the next pass leads the pin to what took the revision's place.
func TestRaceWithKubeVirt(t *testing.T) {
	for name, at := range map[string]fixture.Fields{"status alone": fixture.InStatus, "pinned": both} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const ourWrites = 4
			for first := 0; first <= ourWrites; first++ {
				for second := first; second <= ourWrites; second++ {
					for third := second; third <= ourWrites; third++ {
						t.Run(fmt.Sprintf("%d-%d-%d", first, second, third), func(t *testing.T) {
							newNamespace(t).race(at, []int{first, second, third})
						})
					}
				}
			}
		})
	}
}

// race has KubeVirt take each of its steps before our write of that number.
func (y *testNamespace) race(at fixture.Fields, before []int) {
	y.machine("web", at, instancetype)
	steps, taken := virtController{y}.upgrade("web", instancetype), 0
	y.pass(y.disturbed(&fault.Transport{Before: func(n int) {
		for taken < len(steps) && before[taken] <= n {
			steps[taken]()
			taken++
		}
	}}, decision.Policy{}))
	for _, step := range steps[taken:] {
		step()
	}
	if at == fixture.InStatus {
		y.mustResolve() // KubeVirt's way is safe for these, and so is ours
	}
	y.retire()
	y.mustResolve()
	y.mustHave("web" + instancetypeTail)
	want := map[string]string{inStatus: "web" + instancetypeTail}
	if at == both {
		want[inSpec] = "web" + instancetypeTail
	}
	y.mustRefer(machines, "web", want)
}

// TestKubeVirtDeletedWhatAPinNames before we ever came. What the status names is a copy of
// the same object at the same generation, and the machine's own: the pin is led to it, also
// that of another machine that shares it, and while both run, since KubeVirt stops neither.
func TestKubeVirtDeletedWhatAPinNames(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", both, instancetype)
	source := instancetype.RevisionName("web")
	y.names("clone", source, true)
	for _, step := range (virtController{y}).upgrade("web", instancetype) {
		step()
	}
	y.change(machines, "web", "status", set(true, "status", "created"))
	i := y.mustPlan(decision.Policy{}, source, decision.Upgrade, decision.ReasonSourceGone)
	for _, word := range []string{"web" + instancetypeTail, "u1.medium", "generation 1", "UID 5d0c2cf4"} {
		mustSay(t, i.Message, word)
	}
	y.mustBe(y.run(decision.Policy{}), source, revision.Succeeded, nil)
	y.mustResolve()
	y.mustRefer(machines, "web", map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail})
	y.mustRefer(machines, "clone", map[string]string{inSpec: "web" + instancetypeTail})
}

// TestKubeVirtUpgradesBetweenScanAndRead: it has created the new revision, written the status and
// deleted what the spec names when we read the revision that our scan had found.
func TestKubeVirtUpgradesBetweenScanAndRead(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", both, instancetype)
	source := instancetype.RevisionName("web")
	kubeVirt := &seen{pick: readsARevision, nth: 1, act: func() {
		for _, step := range (virtController{y}).upgrade("web", instancetype) {
			step()
		}
	}}
	y.mustBe(y.pass(y.watched(kubeVirt, slowClock{y.clock})), source, revision.Succeeded, nil)
	y.mustHave("web" + instancetypeTail)
	y.mustRefer(machines, "web", map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail})
}

// TestKubeVirtDeletesWhatWasRelabelled: it read the revision before we labelled it, and deletes
// it afterwards, without a precondition. The same pass leads the pin to what took its place.
func TestKubeVirtDeletesWhatWasRelabelled(t *testing.T) {
	unlabelled := fixture.Find("F3/VirtualMachineClusterInstancetype/unlabelled")
	for name, pass := range map[string]func(*testNamespace, *revision.Upgrader) map[string]revision.Result{
		"in a run": (*testNamespace).pass,
		"in a pass of the manager": func(y *testNamespace, u *revision.Upgrader) map[string]revision.Result {
			return y.advanceAll(u, "gone", unlabelled.RevisionName("web"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newNamespace(t)
			y.machine("web", both, unlabelled)
			source := unlabelled.RevisionName("web")
			results := pass(y, y.watched(y.deletesWhatWasRelabelled(unlabelled), y.clock))
			y.mustBe(results, source, revision.Succeeded, nil)
			y.mustHave("web" + instancetypeTail)
			y.mustRefer(machines, "web", map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail})
		})
	}
}

// TestRepairKeepsToTheScope: what KubeVirt breaks meanwhile is repaired in the scope of the run, and nowhere else.
func TestRepairKeepsToTheScope(t *testing.T) {
	t.Parallel()
	unlabelled := fixture.Find("F3/VirtualMachineClusterInstancetype/unlabelled")
	y := newNamespace(t)
	y.machine("web", both, unlabelled)
	y.machine("other", both, instancetype)
	y.change(machines, "web", "", set("a", "metadata", "labels", "zone"))
	kubeVirt := y.deletesWhatWasRelabelled(unlabelled)
	deletes := kubeVirt.act
	kubeVirt.act = func() {
		deletes()
		for _, step := range (virtController{y}).upgrade("other", instancetype) {
			step()
		}
	}
	_, err := y.watched(kubeVirt, y.clock).Run(t.Context(), revision.Scope{Namespace: y.namespace, Selector: labels.SelectorFromSet(labels.Set{"zone": "a"})}, nil)
	y.must(nil, err)
	y.mustRefer(machines, "web", map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail})
	y.mustRefer(machines, "other", map[string]string{inSpec: instancetype.RevisionName("other"), inStatus: "other" + instancetypeTail})
}

// deletesWhatWasRelabelled has KubeVirt upgrade a revision of the machine web beside us: it creates the new one before we relabel the
// old one, and takes its other steps before we list the revisions again.
func (y *testNamespace) deletesWhatWasRelabelled(unlabelled fixture.Fixture) *seen {
	steps, relabelled := virtController{y}.upgrade("web", unlabelled), false
	return &seen{nth: 1, pick: func(req *http.Request) bool {
		if req.Method == http.MethodPut && !relabelled {
			relabelled = true
			steps[0]()
		}
		return relabelled && listsRevisions(req)
	}, act: func() {
		steps[1]()
		steps[2]()
	}}
}

// TestWhatProvesNothing: a revision that the status names is another machine's, or a copy of
// another generation. The pin stays, and the plan says that nothing proves it.
func TestWhatProvesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		candidate bool // the machine's own
		replace   func(y *testNamespace) string
	}{
		"another generation": {true, func(y *testNamespace) string {
			other := instancetype
			other.Generation++
			y.createRevisions(y.read(machines, "web"), other)
			return other.RevisionName("web")
		}},
		"another machine's": {false, func(y *testNamespace) string {
			other := y.create(fixture.VirtualMachine(y.namespace, "other", fixture.InSpec))
			r := instancetype.Revision(other)
			r.Name = "web" + instancetypeTail
			y.createRevision(r)
			return r.Name
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newNamespace(t)
			y.machine("web", both, instancetype)
			source := instancetype.RevisionName("web")
			recorded := test.replace(y)
			virtController{y}.record("web", instancetype, recorded)
			y.removeRevision(source)
			i := y.mustPlan(decision.Policy{}, source, decision.Blocked, decision.ReasonSourceGone)
			if got := strings.Contains(i.Message, recorded+", which is in a status beside it, may hold the same"); got != test.candidate {
				t.Errorf("the plan says of a candidate %t: %s", got, i.Message)
			}
			r := y.advance(decision.Policy{}, revision.Request{Name: source})
			if r.Phase != revision.Failed || r.Reason != decision.ReasonSourceGone {
				t.Errorf("%s (%s: %s)", r.Phase, r.Reason, r.Message)
			}
			y.mustRefer(machines, "web", map[string]string{inSpec: source, inStatus: recorded})
			if !test.candidate {
				return
			}
			key := types.NamespacedName{Namespace: y.namespace, Name: source}
			for _, want := range []bool{true, false} {
				if written, err := y.corrector().Fix(t.Context(), key, correction.Correction{Replacement: recorded}); err != nil || written != want {
					t.Errorf("the replacement was noted: %t, %v", written, err)
				}
			}
			y.mustBe(y.run(decision.Policy{}), source, revision.Succeeded, nil)
			y.run(decision.Policy{}) // it is at an old version itself
			y.mustRefer(machines, "web", map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail})
		})
	}
}

// TestKubeVirtExpandsAMachine that was upgraded: it deletes the new revision, and nothing needs
// the old one. The plan asks to delete it, since its version can't be dropped before.
func TestKubeVirtExpandsAMachine(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", fixture.InStatus, instancetype)
	source := instancetype.RevisionName("web")
	y.run(decision.Policy{})
	y.change(machines, "web", "", set(nil, "spec", "instancetype"))
	y.change(machines, "web", "status", set(nil, "status", "instancetypeRef"))
	y.removeRevision("web" + instancetypeTail)
	i := y.mustPlan(decision.Policy{}, source, decision.Unreferenced, decision.ReasonUnreferenced)
	mustSay(t, i.Message, "web"+instancetypeTail+", which has replaced it and is gone")
	if r := y.advance(decision.Policy{}, revision.Request{Name: source}); r.Phase != revision.Skipped || r.Reason != decision.ReasonReplacementGone {
		t.Errorf("%s (%s: %s)", r.Phase, r.Reason, r.Message)
	}
	y.mustHave(source)
}

// TestStatusFollowsSpec: KubeVirt mirrors the spec before each of our writes.
func TestStatusFollowsSpec(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", fixture.InSpec, instancetype)
	y.pass(y.disturbed(&fault.Transport{Before: func(int) { virtController{y}.mirror("web") }}, decision.Policy{}))
	virtController{y}.mirror("web")
	y.retire()
	y.mustResolve()
	y.mustRefer(machines, "web", map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail})
	y.mustHave("web" + instancetypeTail)
}

// TestMachineChangesMidway: what a user does to the machine before any of our writes
// wins, and nothing that is written leads anywhere else than before.
func TestMachineChangesMidway(t *testing.T) {
	newer := fixture.Find("F3/VirtualMachineInstancetype/labelled")
	for name, test := range map[string]struct {
		reason string
		change func(*testNamespace)
		want   map[string]string
	}{
		"expanded": {
			reason: "the Expand policy removes the matchers, and there is nothing left to lead",
			change: func(y *testNamespace) {
				y.change(machines, "web", "", set(nil, "spec", "instancetype"))
				y.change(machines, "web", "status", set(nil, "status", "instancetypeRef"))
			},
			want: map[string]string{},
		},
		"another instance type": {
			reason: "a user chooses another one, which KubeVirt captures",
			change: func(y *testNamespace) {
				y.change(machines, "web", "", set(map[string]any{"name": newer.Object, "kind": newer.Kind}, "spec", "instancetype"))
				virtController{y}.capture("web", newer)
			},
			want: map[string]string{inStatus: "web-web.medium-v1beta1-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3"},
		},
		"another pin": {
			reason: "a user pins another revision",
			change: func(y *testNamespace) {
				vm := y.read(machines, "web")
				y.createRevisions(vm, newer)
				matcher := map[string]any{"name": newer.Object, "kind": newer.Kind, "revisionName": newer.RevisionName("web")}
				y.change(machines, "web", "", set(matcher, "spec", "instancetype"))
				virtController{y}.mirror("web")
			},
			want: map[string]string{inSpec: newer.RevisionName("web"), inStatus: newer.RevisionName("web")},
		},
		"labelled": {
			reason: "a change that has nothing to do with it only costs another try",
			change: func(y *testNamespace) { y.change(machines, "web", "", set("a", "metadata", "labels", "zone")) },
			want:   map[string]string{inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := range 4 {
				y := newNamespace(t)
				y.machine("web", both, instancetype)
				y.pass(y.disturbed(&fault.Transport{Before: func(n int) {
					if n == at {
						test.change(y)
					}
				}}, decision.Policy{}))
				y.retire()
				y.mustResolve()
				y.mustRefer(machines, "web", test.want)
				if t.Failed() {
					t.Fatalf("changed before write %d: %s", at, test.reason)
				}
			}
		})
	}
}

// TestGitOpsRevertsAgainAndAgain: the source stays for as long as it is pinned anew,
// and each time it is counted from the beginning.
func TestGitOpsRevertsAgainAndAgain(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", both, instancetype)
	source := instancetype.RevisionName("web")
	revert := func() {
		y.change(machines, "web", "", set(source, "spec", "instancetype", "revisionName"))
		virtController{y}.mirror("web")
	}
	for range 3 {
		y.mustBe(y.run(decision.Policy{}), source, revision.Retained, decision.ReasonRetained)
		y.later(2 * decision.DefaultRetention)
		revert()
		y.mustResolve()
	}
	// Now it is reverted at once, after each of our writes of the spec.
	results := y.pass(y.disturbed(&fault.Transport{Before: func(n int) {
		if n >= 2 {
			revert()
		}
	}}, decision.Policy{}))
	y.mustBe(results, source, revision.InUse, decision.ReasonChanged)
	if y.revisions()[source] == nil {
		t.Error("the source is gone, and a client pins it again and again")
	}
	y.mustResolve()
	y.retire()
	y.mustHave("web" + instancetypeTail)
	y.mustResolve()
}

// TestTwoUpgradersAtOnce: the manager and the command line.
func TestTwoUpgradersAtOnce(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", both, instancetype, preference)
	y.pass(y.disturbed(&fault.Transport{Before: func(int) { y.run(decision.Policy{}) }}, decision.Policy{}))
	y.retire()
	y.mustHave("web"+instancetypeTail, "web"+preferenceTail)
	y.mustResolve()
}

// TestSnapshotTakenMidway, before each of our writes: it has copies of what the
// machine referred to then, and the next pass upgrades what of it is old.
func TestSnapshotTakenMidway(t *testing.T) {
	t.Parallel()
	for at := range 4 {
		y := newNamespace(t)
		y.machine("web", both, instancetype)
		y.pass(y.disturbed(&fault.Transport{Before: func(n int) {
			if n == at {
				virtController{y}.snapshot("web", "nightly")
			}
		}}, decision.Policy{}))
		y.mustResolve()
		y.retire()
		y.mustResolve()
		y.mustHave("web"+instancetypeTail, "nightly"+instancetypeTail)
		pin := slices.Collect(maps.Values(y.refers(contents, "vmsnapshot-content-nightly")))
		if !slices.Equal(pin, []string{"nightly" + instancetypeTail}) {
			t.Errorf("taken before write %d, the content refers to %v", at, pin)
		}
	}
}

// TestMachineDeletedMidway and created again, which makes it another one: what was
// stored for the first one has no owner then, and nothing is made for it.
func TestMachineDeletedMidway(t *testing.T) {
	t.Parallel()
	for at := range 4 {
		y := newNamespace(t)
		old := y.machine("web", both, instancetype)
		y.pass(y.disturbed(&fault.Transport{Before: func(n int) {
			if n == at {
				y.remove(machines, "web")
			}
		}}, decision.Policy{}))
		y.create(fixture.VirtualMachine(y.namespace, "web", fixture.InSpec, instancetype))
		source := instancetype.RevisionName("web")
		r := y.advance(decision.Policy{}, revision.Request{Name: source})
		if r.Phase != revision.Failed || r.Reason != decision.ReasonOwnerGone {
			t.Errorf("deleted before write %d: %s (%s: %s)", at, r.Phase, r.Reason, r.Message)
		}
		y.mustRefer(machines, "web", map[string]string{inSpec: source})
		for name, r := range y.revisions() {
			if r.OwnerReferences[0].UID != old.GetUID() {
				t.Errorf("%s belongs to %s", name, r.OwnerReferences[0].UID)
			}
		}
	}
}

// TestMachineIsCopiedMeanwhile: while KubeVirt takes or restores a snapshot, nothing is
// written to the machine, and nothing of its own is removed.
func TestMachineIsCopiedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"snapshotInProgress", "restoreInProgress"} {
		y := newNamespace(t)
		y.machine("web", both, instancetype)
		source := instancetype.RevisionName("web")
		y.change(machines, "web", "status", set("nightly", "status", field))
		y.mustPlan(decision.Policy{}, source, decision.Deferred, decision.ReasonReferrerNotReady)
		y.run(decision.Policy{})
		y.mustHave(source)
		y.change(machines, "web", "status", set(nil, "status", field))
		y.run(decision.Policy{})
		y.later(decision.DefaultRetention)
		y.change(machines, "web", "status", set("nightly", "status", field))
		y.mustBe(y.run(decision.Policy{}), source, revision.Retained, decision.ReasonReferrerNotReady)
		y.mustHave(source, "web"+instancetypeTail)
		y.change(machines, "web", "status", set(nil, "status", field))
		y.mustBe(y.run(decision.Policy{}), source, revision.Succeeded, nil)
	}
}

// TestEmptyPinIsNone: KubeVirt ≥ 1.4 leaves the spec's revisionName empty.
func TestEmptyPinIsNone(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", fixture.InStatus, instancetype)
	vm := y.change(machines, "web", "", set("", "spec", "instancetype", "revisionName"))
	y.run(decision.Policy{})
	y.mustRefer(machines, "web", map[string]string{inStatus: "web" + instancetypeTail})
	if now := y.read(machines, "web"); now.GetGeneration() != vm.GetGeneration() {
		t.Errorf("the spec was written: %v", must(unstructured.NestedFieldNoCopy(now.Object, "spec", "instancetype")))
	}
}
