package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// A machine of two new revisions passes, and one of which anything is missing does not:
// else a run that left some out would look fast.
func TestResolve(t *testing.T) {
	instancetype, preference := fixture.Find("F3/VirtualMachineClusterInstancetype/labelled"), fixture.Find("F3/VirtualMachinePreference/labelled")
	name := instancetype.RevisionName("vm")
	cases := map[string]struct {
		reason string
		spoil  func(vm *unstructured.Unstructured, there map[string]*appsv1.ControllerRevision)
		says   string
	}{
		"Whole": {reason: "Both references of both roles lead to a revision at the target.",
			spoil: func(*unstructured.Unstructured, map[string]*appsv1.ControllerRevision) {}},
		"SpecAlone": {reason: "A status that was forgotten leads to the old revision.", says: "its status",
			spoil: func(vm *unstructured.Unstructured, _ map[string]*appsv1.ControllerRevision) {
				unstructured.RemoveNestedField(vm.Object, "status", "instancetypeRef", "controllerRevisionRef")
			}},
		"NoReference": {reason: "A machine that names nothing was not upgraded but robbed.", says: "not there",
			spoil: func(vm *unstructured.Unstructured, _ map[string]*appsv1.ControllerRevision) {
				unstructured.RemoveNestedField(vm.Object, "spec", "preference")
				unstructured.RemoveNestedField(vm.Object, "status", "preferenceRef")
			}},
		"Gone": {reason: "A reference may lead nowhere.", says: "not there",
			spoil: func(_ *unstructured.Unstructured, there map[string]*appsv1.ControllerRevision) { delete(there, name) }},
		"Another's": {reason: "A revision of another machine goes with that one.", says: "not its own",
			spoil: func(_ *unstructured.Unstructured, there map[string]*appsv1.ControllerRevision) {
				there[name].OwnerReferences[0].UID = "other"
			}},
		"Old": {reason: "The name may be new and the data old.", says: "v1alpha2",
			spoil: func(_ *unstructured.Unstructured, there map[string]*appsv1.ControllerRevision) {
				there[name].Data.Raw = []byte(fixture.Find("F2/VirtualMachineClusterInstancetype/labelled").Data)
			}},
		"OtherRole": {reason: "A preference is no instance type.", says: "Preference",
			spoil: func(_ *unstructured.Unstructured, there map[string]*appsv1.ControllerRevision) {
				there[name].Data.Raw = []byte(preference.Data)
			}},
		"Unreadable": {reason: "What holds nothing is not at the target.", says: "can't be read",
			spoil: func(_ *unstructured.Unstructured, there map[string]*appsv1.ControllerRevision) {
				there[name].Data.Raw = []byte("{")
			}},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			vm := fixture.VirtualMachine("team", "vm", fixture.InSpec|fixture.InStatus, instancetype, preference)
			vm.SetUID("1")
			there := map[string]*appsv1.ControllerRevision{}
			for _, f := range []fixture.Fixture{instancetype, preference} {
				r := f.Revision(vm)
				there[r.Name] = r
			}
			c.spoil(vm, there)
			found, err := resolve(vm, there)
			if c.says == "" {
				if err != nil || found[0] != there[name] || found[1] == nil {
					t.Errorf("%s\ngot %v, %v", c.reason, found, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s\ngot %v, want an error that says %q", c.reason, err, c.says)
			}
		})
	}
}

// Each role's forms meet each of the other's, and none is at the target already.
func TestFleetIsMixed(t *testing.T) {
	f := &fleet{namespaces: []string{"a", "b", "c"}}
	pairs, names := map[[2]string]bool{}, map[string]bool{}
	for i := range 200 {
		m := f.machine(i)
		names[m.namespace+"/"+m.name] = true
		pairs[[2]string{m.roles[0].fixture.Name, m.roles[1].fixture.Name}] = true
		for _, r := range m.roles {
			if r.fixture.Version == target || r.fixture.Preference() != (r.field == "preference") {
				t.Errorf("machine %d has %s as its %s", i, r.fixture.Name, r.field)
			}
		}
	}
	if len(names) != 200 || len(pairs) != 100 {
		t.Errorf("got %d machines with %d pairs of fixtures, want 200 with all 100", len(names), len(pairs))
	}
}
