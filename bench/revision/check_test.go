package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// TestResolve: a VirtualMachine with two new revisions passes, and one that lacks anything does
// not. Otherwise a run that leaves some out would look fast.
func TestResolve(t *testing.T) {
	instancetype, preference := fixture.Find("F3/VirtualMachineClusterInstancetype/labelled"), fixture.Find("F3/VirtualMachinePreference/labelled")
	name := instancetype.RevisionName("vm")
	cases := map[string]struct {
		reason string
		spoil  func(vm *unstructured.Unstructured, revisions byName)
		want   string
	}{
		"Whole": {reason: "Both references of both roles lead to a revision at the target.",
			spoil: func(*unstructured.Unstructured, byName) {}},
		"SpecAlone": {reason: "A status that was left out names the old revision.", want: "its status",
			spoil: func(vm *unstructured.Unstructured, _ byName) {
				unstructured.RemoveNestedField(vm.Object, "status", "instancetypeRef", "controllerRevisionRef")
			}},
		"NoReference": {reason: "A VirtualMachine that names nothing has lost its references.", want: "does not exist",
			spoil: func(vm *unstructured.Unstructured, _ byName) {
				unstructured.RemoveNestedField(vm.Object, "spec", "preference")
				unstructured.RemoveNestedField(vm.Object, "status", "preferenceRef")
			}},
		"Gone": {reason: "A reference may name a revision that is gone.", want: "does not exist",
			spoil: func(_ *unstructured.Unstructured, revisions byName) { delete(revisions, name) }},
		"Another's": {reason: "A revision of another VirtualMachine is deleted with that one.", want: "not its own",
			spoil: func(_ *unstructured.Unstructured, revisions byName) {
				revisions[name].OwnerReferences[0].UID = "other"
			}},
		"Old": {reason: "The name may be new and the data old.", want: "v1alpha2",
			spoil: func(_ *unstructured.Unstructured, revisions byName) {
				revisions[name].Data.Raw = []byte(fixture.Find("F2/VirtualMachineClusterInstancetype/labelled").Data)
			}},
		"OtherRole": {reason: "A preference is no instance type.", want: "Preference",
			spoil: func(_ *unstructured.Unstructured, revisions byName) {
				revisions[name].Data.Raw = []byte(preference.Data)
			}},
		"Unreadable": {reason: "Data that can't be read are not at the target.", want: "can't be read",
			spoil: func(_ *unstructured.Unstructured, revisions byName) {
				revisions[name].Data.Raw = []byte("{")
			}},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			vm := fixture.VirtualMachine("team", "vm", fixture.InSpec|fixture.InStatus, instancetype, preference)
			vm.SetUID("1")
			revisions := byName{}
			for _, f := range []fixture.Fixture{instancetype, preference} {
				r := f.Revision(vm)
				revisions[r.Name] = r
			}
			c.spoil(vm, revisions)
			found, err := resolve(vm, revisions)
			if c.want == "" {
				if err != nil || found[0] != revisions[name] || found[1] == nil {
					t.Errorf("%s\ngot %v, %v", c.reason, found, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s\ngot %v, want an error that says %q", c.reason, err, c.want)
			}
		})
	}
}

// TestFleetIsMixed: each form of one role is combined with each of the other, and none is at the
// target already.
func TestFleetIsMixed(t *testing.T) {
	f := &fleet{namespaces: []string{"a", "b", "c"}}
	pairs, names := map[[2]string]bool{}, map[string]bool{}
	for i := range 200 {
		m := f.vm(i)
		names[m.namespace+"/"+m.name] = true
		pairs[[2]string{m.roles[0].fixture.Name, m.roles[1].fixture.Name}] = true
		for _, r := range m.roles {
			if r.fixture.Version == target || r.fixture.Preference() != (r.field == "preference") {
				t.Errorf("VirtualMachine %d has %s as its %s", i, r.fixture.Name, r.field)
			}
		}
	}
	if len(names) != 200 || len(pairs) != 100 {
		t.Errorf("got %d VirtualMachines with %d pairs of fixtures, want 200 with all 100", len(names), len(pairs))
	}
}

// TestRetained: an old revision without the time since which it is unreferenced does not pass.
// Otherwise a client that leaves out these writes would look fast.
func TestRetained(t *testing.T) {
	const to, since = "godwit.dev/upgraded-to", "godwit.dev/unreferenced-since"
	whole := map[string]string{to: "new", since: "2026-01-02T03:04:05Z"}
	cases := map[string]struct {
		reason      string
		annotations map[string]string
		want        string
	}{
		"Whole":   {reason: "Both annotations are there.", annotations: whole},
		"NoTime":  {reason: "The retention has not begun.", annotations: map[string]string{to: "new"}, want: "since when"},
		"Another": {reason: "A rollback would take another revision.", annotations: map[string]string{to: "other", since: whole[since]}, want: `want "new"`},
		"None":    {reason: "Nothing was written.", want: `want "new"`},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			err := checkRetained(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}, "new")
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s\ngot %v, want an error that says %q", c.reason, err, c.want)
			}
		})
	}
	if checkRetained(nil, "new") == nil {
		t.Error("a revision that is gone passed for one that is retained")
	}
}
