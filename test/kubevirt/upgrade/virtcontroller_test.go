package upgrade_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/revision/reference"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// virtController does to revisions what KubeVirt's controllers do, one step at a call.
type virtController struct{ *testNamespace }

// mirror writes the revisions that a machine's spec pins into its status, as KubeVirt
// does since v1.5.
func (v virtController) mirror(vm string) {
	v.t.Helper()
	v.change(machines, vm, "status", func(o map[string]any) {
		for _, field := range []string{"instancetype", "preference"} {
			pinned, _, _ := unstructured.NestedMap(o, "spec", field)
			if name, _ := pinned["revisionName"].(string); name != "" {
				delete(pinned, "revisionName")
				pinned["controllerRevisionRef"] = map[string]any{"name": name}
				set(pinned, "status", field+"Ref")(o)
			}
		}
	})
}

// stop deletes the instance of a machine. Before the controller looks at what a machine is to do,
// it reads the machine's revisions: where it can't, it does nothing else, however often it tries.
func (v virtController) stop(vm string, reads ...string) error {
	v.t.Helper()
	revisions := v.revisions()
	for _, name := range v.refers(machines, vm) {
		r := revisions[name]
		if r == nil {
			return fmt.Errorf("FailedFindInstancetype: controllerrevisions.apps %q not found", name)
		}
		s, err := kubevirt.Family{}.Decode(r, instancetype.ExpectedType())
		v.must(s, err)
		if !slices.Contains(reads, s.Version) {
			return fmt.Errorf("FailedFindInstancetype: no kind is registered for version %s of ControllerRevision %s", s.Version, name)
		}
	}
	v.testNamespace.stop(vm)
	return nil
}

// capture makes the revision of a machine that has none yet, and notes it in status.
func (v virtController) capture(vm string, f fixture.Fixture) {
	v.t.Helper()
	v.createRevisions(v.read(machines, vm), f)
	v.record(vm, f, f.RevisionName(vm))
}

func (v virtController) record(vm string, f fixture.Fixture, name string) {
	v.t.Helper()
	v.change(machines, vm, "status", func(o map[string]any) {
		matcher := map[string]any{"name": f.Object, "kind": f.Kind, "controllerRevisionRef": map[string]any{"name": name}}
		set(matcher, "status", "instancetypeRef")(o)
	})
}

// snapshot copies a machine that stands, and the revisions that its spec pins: for the
// copy the machine's name within a revision's becomes the snapshot's, and of the
// metadata only labels are taken. What a status alone names is not copied.
func (v virtController) snapshot(vm, name string) {
	v.t.Helper()
	machine := v.read(machines, vm)
	snapshot := v.create(fixture.Snapshot(machine, name))
	content := fixture.SnapshotContent(machine, name, fixture.InSpec)
	for field, source := range v.pinned(vm) {
		to := strings.Replace(source, vm, name, 1)
		v.copyRevision(source, to, *metav1.NewControllerRef(snapshot, snapshot.GroupVersionKind()))
		set(to, "spec", "source", "virtualMachine", "spec", field, "revisionName")(content.Object)
	}
	unstructured.RemoveNestedField(content.Object, "spec", "source", "virtualMachine", "status")
	v.create(content)
}

// restore brings a machine back to a snapshot as KubeVirt does: each revision that the
// content names is to be there under the name that it has with the machine's name in the
// place of the snapshot's. Of a machine that exists a revision that is missing is an
// error, which KubeVirt retries for ever while the machine says restoreInProgress; one
// that holds something else is deleted and made of the snapshot's. A machine that does
// not exist is made after its revisions, which it claims later.
func (v virtController) restore(snapshot, vm string) error {
	v.t.Helper()
	machine, err := v.dynamic.Resource(machines).Namespace(v.namespace).Get(v.t.Context(), vm, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		machine = nil
	} else {
		v.must(machine, err)
		machine = v.change(machines, vm, "status", set("restore-"+snapshot, "status", "restoreInProgress"))
	}
	pins := map[string]string{}
	for path, source := range v.refers(contents, "vmsnapshot-content-"+snapshot) {
		field := strings.Split(path, "/")[5]
		if pins[field], err = v.restoreRevision(source, strings.Replace(source, snapshot, vm, 1), machine); err != nil {
			return err
		}
	}
	if machine == nil {
		machine = v.create(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
			"metadata": map[string]any{"namespace": v.namespace, "name": vm},
			"spec":     v.contentSpec(snapshot, pins),
		}})
		for _, name := range pins {
			v.claim(name, machine)
		}
	}
	restored := v.contentSpec(snapshot, pins)
	v.change(machines, vm, "", func(o map[string]any) { set(restored, "spec")(o) })
	v.change(machines, vm, "status", set(nil, "status", "restoreInProgress"))
	v.mirror(vm)
	return nil
}

// restoreRevision is the step of one revision; machine is nil where there is none yet.
func (v virtController) restoreRevision(from, to string, machine *unstructured.Unstructured) (string, error) {
	v.t.Helper()
	all := v.revisions()
	if all[from] == nil {
		return "", fmt.Errorf("unable to find ControllerRevision %s", from)
	}
	switch there := all[to]; {
	case machine == nil && there != nil:
		return to, nil
	case machine == nil:
		v.copyRevision(from, to)
		return to, nil
	case there == nil:
		return "", fmt.Errorf("unable to find ControllerRevision %s", to)
	case v.equal(all[from], there):
		return to, nil
	}
	v.removeRevision(to)
	v.copyRevision(from, to, *metav1.NewControllerRef(machine, machine.GroupVersionKind()))
	return to, nil
}

// equal compares what two revisions hold at the version that KubeVirt reads them at,
// and of that the spec alone.
func (v virtController) equal(a, b *appsv1.ControllerRevision) bool {
	v.t.Helper()
	var specs [2]any
	for i, r := range []*appsv1.ControllerRevision{a, b} {
		s, err := kubevirt.Family{}.Decode(r, instancetype.ExpectedType())
		v.must(s, err)
		s, err = kubevirt.Family{}.Convert(s, "v1beta1")
		v.must(s, err)
		specs[i] = s.Object["spec"]
	}
	return reflect.DeepEqual(specs[0], specs[1])
}

// contentSpec is the machine's spec in a snapshot's content, with other pins.
func (v virtController) contentSpec(snapshot string, pins map[string]string) map[string]any {
	v.t.Helper()
	content := v.read(contents, "vmsnapshot-content-"+snapshot).Object
	spec, _, err := unstructured.NestedMap(content, "spec", "source", "virtualMachine", "spec")
	v.must(spec, err)
	for field, name := range pins {
		v.must(nil, unstructured.SetNestedField(spec, name, field, "revisionName"))
	}
	return spec
}

// claim gives a revision to a machine.
func (v virtController) claim(name string, machine *unstructured.Unstructured) {
	v.t.Helper()
	of := v.core.AppsV1().ControllerRevisions(v.namespace)
	r, err := of.Get(v.t.Context(), name, metav1.GetOptions{})
	v.must(r, err)
	r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(machine, machine.GroupVersionKind())}
	v.must(of.Update(v.t.Context(), r, metav1.UpdateOptions{}))
}

// pinned is what a machine's spec names.
func (v virtController) pinned(vm string) map[string]string {
	v.t.Helper()
	machine, all := v.read(machines, vm).Object, map[string]string{}
	for _, field := range []string{"instancetype", "preference"} {
		if name, _, _ := unstructured.NestedString(machine, "spec", field, "revisionName"); name != "" {
			all[field] = name
		}
	}
	return all
}

// referred is what a machine's upgrade goes by: its status, or else its spec.
func (v virtController) referred(vm string) map[string]string {
	v.t.Helper()
	machine, all := v.read(machines, vm).Object, v.pinned(vm)
	for _, field := range []string{"instancetype", "preference"} {
		if name, _, _ := unstructured.NestedString(machine, "status", field+"Ref", "controllerRevisionRef", "name"); name != "" {
			all[field] = name
		}
	}
	return all
}

func (v virtController) copyRevision(from, to string, owners ...metav1.OwnerReference) {
	v.t.Helper()
	source, err := v.core.AppsV1().ControllerRevisions(v.namespace).Get(v.t.Context(), from, metav1.GetOptions{})
	v.must(source, err)
	v.createRevision(&appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: to, Labels: source.Labels, OwnerReferences: owners,
		},
		Data: source.Data,
	})
}

// upgrade is how KubeVirt ≥ 1.3 upgrades the revision of a machine's status: it creates
// the new one, and stops if that exists; it writes the status, and leaves
// the spec alone; it deletes the old one, whatever refers to it.
func (v virtController) upgrade(vm string, f fixture.Fixture) []func() {
	var from, to string
	return []func(){
		func() {
			from = v.referred(vm)["instancetype"]
			source := v.revisions()[from]
			if source == nil || source.Labels["instancetype.kubevirt.io/object-version"] == "v1beta1" {
				return
			}
			r := v.compose(source, f)
			_, err := v.core.AppsV1().ControllerRevisions(v.namespace).Create(v.t.Context(), r, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return
			}
			v.must(nil, err)
			to = r.Name
		},
		func() {
			if to != "" {
				v.record(vm, f, to)
			}
		},
		func() {
			if to != "" {
				_ = v.core.AppsV1().ControllerRevisions(v.namespace).Delete(v.t.Context(), from, metav1.DeleteOptions{})
			}
		},
	}
}

// compose is what KubeVirt makes of a revision.
func (v virtController) compose(source *appsv1.ControllerRevision, f fixture.Fixture) *appsv1.ControllerRevision {
	v.t.Helper()
	r, err := upgradedByKubeVirt(source, f.ExpectedType())
	v.must(r, err)
	return r
}

// upgradedByKubeVirt is the revision that KubeVirt makes of an old one. Of a spec without its
// object it knows neither name nor UID, and takes a name that stands for any.
func upgradedByKubeVirt(source *appsv1.ControllerRevision, expected reference.ExpectedType) (*appsv1.ControllerRevision, error) {
	var family kubevirt.Family
	s, err := family.Decode(source, expected)
	if err != nil {
		return nil, err
	}
	if s.Form == kubevirt.FormSpecRevision {
		role := "instancetype"
		if strings.HasSuffix(expected.Kind, "Preference") {
			role = "preference"
		}
		s.Object["kind"] = "VirtualMachine" + strings.ToUpper(role[:1]) + role[1:]
		s.Object["metadata"] = map[string]any{"name": "old-version-of-" + role + "-object", "creationTimestamp": nil}
	}
	if s, err = family.Convert(s, "v1beta1"); err != nil {
		return nil, err
	}
	r := &appsv1.ControllerRevision{}
	if s.Form == kubevirt.FormSpecRevision {
		owner := metav1.GetControllerOf(source).Name
		metadata := s.Object["metadata"].(map[string]any)
		r.Name = fmt.Sprintf("%s-%s-v1beta1--0", owner, metadata["name"])
		r.Labels = map[string]string{
			"instancetype.kubevirt.io/object-generation": "0", "instancetype.kubevirt.io/object-kind": s.Object["kind"].(string),
			"instancetype.kubevirt.io/object-name": metadata["name"].(string), "instancetype.kubevirt.io/object-uid": "", "instancetype.kubevirt.io/object-version": "v1beta1",
		}
		r.Data.Raw, err = json.Marshal(s.Object)
	} else {
		r, err = family.Compose(source, s)
	}
	if err == nil {
		r.OwnerReferences = source.OwnerReferences
	}
	return r, err
}

// TestFakeUpgradesAsKubeVirt: what virt-controller v1.6.6 made of revisions in each form, beside a
// real API server and its webhooks.
func TestFakeUpgradesAsKubeVirt(t *testing.T) {
	t.Parallel()
	type revision struct {
		Name, Owner string
		Labels      map[string]string
		Data        json.RawMessage
	}
	var seen []struct {
		Field, SpecNames, StatusNames string
		OldIsGone                     bool
		Before, After                 revision
	}
	text, err := os.ReadFile("testdata/upgraded-by-kubevirt-v1.6.6.json")
	if err == nil {
		err = json.Unmarshal(text, &seen)
	}
	if err != nil || len(seen) == 0 {
		t.Fatalf("%d revisions, %v", len(seen), err)
	}
	for _, one := range seen {
		if one.SpecNames != one.Before.Name || one.StatusNames != one.After.Name || !one.OldIsGone {
			t.Errorf("%s: KubeVirt leaves the spec, writes the status, and deletes: %+v", one.Before.Name, one)
		}
		kind, owner, _ := strings.Cut(one.Before.Owner, "/")
		source := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: one.Before.Name, Labels: one.Before.Labels, OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: kind, Name: owner, Controller: new(true)}}},
			Data:       runtime.RawExtension{Raw: one.Before.Data},
		}
		expected := reference.ExpectedType{Kind: map[string]string{"instancetype": "VirtualMachineClusterInstancetype", "preference": "VirtualMachineClusterPreference"}[one.Field]}
		got, err := upgradedByKubeVirt(source, expected)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(one.After.Labels, got.Labels); got.Name != one.After.Name || diff != "" {
			t.Errorf("the fake makes %s of %s, KubeVirt %s; labels (-KubeVirt +fake):\n%s", got.Name, one.Before.Name, one.After.Name, diff)
		}
		if diff := cmp.Diff(object(t, one.After.Data), object(t, got.Data.Raw)); diff != "" {
			t.Errorf("%s (-KubeVirt +fake):\n%s", got.Name, diff)
		}
	}
}
