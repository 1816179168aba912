package upgrade_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// replacements are what KubeVirt would write of each kind at v1beta1: the name after the
// owner's, and the labels.
var replacements = map[string]struct {
	tail   string
	labels map[string]string
}{
	"VirtualMachineInstancetype": {"-web.medium-v1beta1-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-3", map[string]string{
		"instancetype.kubevirt.io/object-generation": "3",
		"instancetype.kubevirt.io/object-kind":       "VirtualMachineInstancetype",
		"instancetype.kubevirt.io/object-name":       "web.medium",
		"instancetype.kubevirt.io/object-uid":        "0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01",
		"instancetype.kubevirt.io/object-version":    "v1beta1",
	}},
	"VirtualMachineClusterInstancetype": {"-u1.medium-v1beta1-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1", map[string]string{
		"instancetype.kubevirt.io/object-generation": "1",
		"instancetype.kubevirt.io/object-kind":       "VirtualMachineClusterInstancetype",
		"instancetype.kubevirt.io/object-name":       "u1.medium",
		"instancetype.kubevirt.io/object-uid":        "5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102",
		"instancetype.kubevirt.io/object-version":    "v1beta1",
	}},
	"VirtualMachinePreference": {"-debian.web-v1beta1-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2", map[string]string{
		"instancetype.kubevirt.io/object-generation": "2",
		"instancetype.kubevirt.io/object-kind":       "VirtualMachinePreference",
		"instancetype.kubevirt.io/object-name":       "debian.web",
		"instancetype.kubevirt.io/object-uid":        "a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203",
		"instancetype.kubevirt.io/object-version":    "v1beta1",
	}},
	"VirtualMachineClusterPreference": {"-fedora-v1beta1-e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04-12", map[string]string{
		"instancetype.kubevirt.io/object-generation": "12",
		"instancetype.kubevirt.io/object-kind":       "VirtualMachineClusterPreference",
		"instancetype.kubevirt.io/object-name":       "fedora",
		"instancetype.kubevirt.io/object-uid":        "e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04",
		"instancetype.kubevirt.io/object-version":    "v1beta1",
	}},
}

// ways in which a fixture may be referred to: each makes a virtual machine and
// returns the owners of revisions of the fixture, among them always the machine.
var ways = map[string]func(*testNamespace, fixture.Fixture) (owners []string){
	"spec": func(y *testNamespace, f fixture.Fixture) []string {
		y.machine(f.VM, fixture.InSpec, f)
		return []string{f.VM}
	},
	"status": func(y *testNamespace, f fixture.Fixture) []string {
		y.machine(f.VM, fixture.InStatus, f)
		return []string{f.VM}
	},
	"both": func(y *testNamespace, f fixture.Fixture) []string { y.machine(f.VM, both, f); return []string{f.VM} },
	"snapshot": func(y *testNamespace, f fixture.Fixture) []string {
		snapshot := y.create(fixture.Snapshot(y.machine(f.VM, both, f), f.VM+"-nightly"))
		y.createRevisions(snapshot, f)
		y.create(fixture.SnapshotContent(y.read(machines, f.VM), snapshot.GetName(), fixture.InSpec, f))
		return []string{f.VM, snapshot.GetName()}
	},
	"shared": func(y *testNamespace, f fixture.Fixture) []string {
		vm := y.machine(f.VM, both, f)
		other := vm.DeepCopy()
		other.SetName("other-" + f.VM)
		other.SetResourceVersion("")
		other.SetUID("")
		y.create(other)
		return []string{f.VM}
	},
	"running": func(y *testNamespace, f fixture.Fixture) []string {
		vm := y.create(fixture.Running(fixture.VirtualMachine(y.namespace, f.VM, both, f)))
		y.createRevisions(vm, f)
		y.createRevision(fixture.StartRevision(vm))
		return []string{f.VM}
	},
}

// TestEveryFixtureReferredToInEveryWay: references are led to what KubeVirt would
// have written, sources are kept for the retention and are gone after it.
func TestEveryFixtureReferredToInEveryWay(t *testing.T) {
	for way, build := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			y := newNamespace(t)
			var all []move
			for _, f := range fixture.All() {
				for _, owner := range build(y, f) {
					all = append(all, move{f, owner})
				}
			}
			before := y.revisions()
			if way == "running" {
				y.staysWhileRunning(all, before)
			}
			results := y.run(decision.Policy{})
			for _, m := range all {
				t.Run(m.owner, func(t *testing.T) { m.led(t, y, before, results[m.source()]) })
			}
			y.later(decision.DefaultRetention - time.Second)
			y.run(decision.Policy{})
			if n := len(y.revisions()); n < len(before) {
				t.Errorf("%d revisions a second before the retention ends, at first there were %d", n, len(before))
			}
			y.later(time.Second)
			results = y.run(decision.Policy{})
			after := y.revisions()
			for _, m := range all {
				if m.upgraded() && (after[m.source()] != nil || results[m.source()].Phase != revision.Succeeded) {
					t.Errorf("%s is still there: %+v", m.source(), results[m.source()])
				}
			}
			if len(after) != len(before) {
				t.Errorf("%d revisions in the end, at first there were %d", len(after), len(before))
			}
			y.mustResolve()
		})
	}
}

// staysWhileRunning: nothing is written by default, and with Hold every source is
// kept, however long, since machines were started with it. Then they are stopped.
func (y *testNamespace) staysWhileRunning(all []move, before map[string]*appsv1.ControllerRevision) {
	y.t.Helper()
	for _, m := range all {
		if m.upgraded() {
			y.mustPlan(decision.Policy{}, m.source(), decision.Deferred, decision.ReasonRunning)
			break // one plan is for all
		}
	}
	y.run(decision.Policy{})
	hold := decision.Policy{OnRunning: decision.Hold}
	for range 2 {
		results := y.run(hold)
		for _, m := range all {
			if m.upgraded() {
				y.mustBe(results, m.source(), revision.InUse, decision.ReasonReferenced)
				y.mustRefer(machines, m.fixture.VM, m.references())
			}
		}
		y.later(2 * decision.DefaultRetention)
	}
	for name := range before {
		if y.revisions()[name] == nil {
			y.t.Errorf("%s is gone, and a VirtualMachine is running and uses it", name)
		}
	}
	y.clock.SetTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for _, m := range all {
		y.change(machines, m.fixture.VM, "status", func(o map[string]any) {
			set("Stopped", "status", "printableStatus")(o)
			set(nil, "status", "created")(o)
		})
	}
}

// move is the way of one revision.
type move struct {
	fixture fixture.Fixture
	owner   string
}

func (m move) source() string { return m.fixture.RevisionName(m.owner) }

// upgraded: what is at v1beta1 already stays where it is.
func (m move) upgraded() bool { return m.fixture.Version != "v1beta1" }

func (m move) replacement() string {
	if !m.upgraded() {
		return m.source()
	}
	return m.owner + replacements[m.fixture.Kind].tail
}

// led checks everything about one revision after the last reference to its source is repointed.
func (m move) led(t *testing.T, y *testNamespace, before map[string]*appsv1.ControllerRevision, result revision.Result) {
	revisions := y.revisions()
	source, replacement := before[m.source()], revisions[m.replacement()]
	if replacement == nil {
		t.Fatalf("there is no %s", m.replacement())
	}
	if diff := cmp.Diff(replacements[m.fixture.Kind].labels, replacement.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(source.OwnerReferences, replacement.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	m.converted(t, source, replacement)
	if m.owner == m.fixture.VM {
		if got := y.refers(machines, m.owner); !containsOnly(got, m.replacement()) {
			t.Errorf("the machine refers to %v", got)
		}
	} else if got := y.refers(contents, "vmsnapshot-content-"+m.owner); !containsOnly(got, m.replacement(), m.fixture.VM+replacements[m.fixture.Kind].tail, m.fixture.RevisionName(m.fixture.VM)) {
		t.Errorf("the snapshot's content refers to %v", got)
	}
	if !m.upgraded() {
		return
	}
	if result.Phase != revision.Retained || result.Replacement != m.replacement() || result.ReplacementUID != replacement.UID {
		t.Errorf("%s (%s: %s), replacement %s", result.Phase, result.Reason, result.Message, result.Replacement)
	}
	want := map[string]string{"godwit.dev/upgraded-from": m.source(), "godwit.dev/upgraded-from-uid": string(source.UID)}
	if diff := cmp.Diff(want, replacement.Annotations); diff != "" {
		t.Errorf("where the replacement comes from (-want +got):\n%s", diff)
	}
	want = map[string]string{"godwit.dev/upgraded-to": m.replacement(), "godwit.dev/unreferenced-since": "2026-01-01T00:00:00Z"}
	if diff := cmp.Diff(want, revisions[m.source()].Annotations); diff != "" {
		t.Errorf("where the source went (-want +got):\n%s", diff)
	}
}

func containsOnly(references map[string]string, names ...string) bool {
	for _, name := range references {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") {
			return false
		}
	}
	return len(references) > 0
}

// converted: the data is what the family makes of it, and its very bytes where there
// is nothing to make.
func (m move) converted(t *testing.T, source, replacement *appsv1.ControllerRevision) {
	t.Helper()
	if !m.upgraded() {
		if !bytes.Equal(source.Data.Raw, replacement.Data.Raw) || source.UID != replacement.UID {
			t.Error("data at the target was written again")
		}
		if untouched := source.ResourceVersion == replacement.ResourceVersion; untouched != m.fixture.Labelled {
			t.Errorf("it was left alone: %t; it had labels: %t", untouched, m.fixture.Labelled)
		}
		return
	}
	var family kubevirt.Family
	s, err := family.Decode(source, m.fixture.ExpectedType())
	if err == nil {
		s, err = family.Convert(s, "v1beta1")
	}
	if err != nil {
		t.Fatal(err)
	}
	if want, got := normal(t, s.Object), object(t, replacement.Data.Raw); !reflect.DeepEqual(want, got) {
		t.Errorf("converted data (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// references of the fixture's own machine, when they are led.
func (m move) references() map[string]string {
	field := "instancetype"
	if m.fixture.Preference() {
		field = "preference"
	}
	return map[string]string{
		fmt.Sprintf("/spec/%s/revisionName", field):                    m.replacement(),
		fmt.Sprintf("/status/%sRef/controllerRevisionRef/name", field): m.replacement(),
	}
}
