package upgrade_test

import (
	"bytes"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/test/kubevirt/stash"
)

// virtController does to revisions what KubeVirt's controllers do, one step at a call.
type virtController struct{ *yard }

// mirror writes the revisions that a machine's spec pins into its status, as KubeVirt
// does since v1.4.
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

// capture makes the revision of a machine that has none yet, and notes it in status.
func (v virtController) capture(vm string, f stash.Fixture) {
	v.t.Helper()
	v.stash(v.read(machines, vm), f)
	v.record(vm, f, f.RevisionName(vm))
}

func (v virtController) record(vm string, f stash.Fixture, name string) {
	v.t.Helper()
	v.change(machines, vm, "status", func(o map[string]any) {
		matcher := map[string]any{"name": f.Object, "kind": f.Kind, "controllerRevisionRef": map[string]any{"name": name}}
		set(matcher, "status", "instancetypeRef")(o)
	})
}

// snapshot copies a machine that stands, and the revisions that it refers to: for the
// copy the machine's name within a revision's becomes the snapshot's, and of the
// metadata only labels are taken. A content pins what it names.
func (v virtController) snapshot(vm, name string) {
	v.t.Helper()
	machine := v.read(machines, vm)
	snapshot := v.create(stash.Snapshot(machine, name))
	content := stash.SnapshotContent(machine, name, stash.InSpec)
	for field, source := range v.referred(vm) {
		to := strings.Replace(source, vm, name, 1)
		v.copyRevision(source, to, snapshot)
		set(to, "spec", "source", "virtualMachine", "spec", field, "revisionName")(content.Object)
	}
	unstructured.RemoveNestedField(content.Object, "spec", "source", "virtualMachine", "status")
	v.create(content)
}

// restore leads a machine to the revisions of a snapshot, which it copies under the
// names that they had: what is there already stays, if it holds the same, and goes
// otherwise. While it does, the machine says so.
func (v virtController) restore(snapshot, vm string) {
	v.t.Helper()
	v.change(machines, vm, "status", set("restore-"+snapshot, "status", "restoreInProgress"))
	machine := v.read(machines, vm)
	pins := map[string]string{}
	for path, source := range v.refers(contents, "vmsnapshot-content-"+snapshot) {
		to := strings.Replace(source, snapshot, vm, 1)
		pins[strings.Split(path, "/")[5]] = to
		if there := v.revisions()[to]; there != nil {
			if bytes.Equal(there.Data.Raw, v.revisions()[source].Data.Raw) {
				continue
			}
			v.must(nil, v.core.AppsV1().ControllerRevisions(v.namespace).Delete(v.t.Context(), to, metav1.DeleteOptions{}))
		}
		v.copyRevision(source, to, machine)
	}
	v.change(machines, vm, "", func(o map[string]any) {
		for field, name := range pins {
			set(name, "spec", field, "revisionName")(o)
		}
	})
	v.change(machines, vm, "status", set(nil, "status", "restoreInProgress"))
	v.mirror(vm)
}

// referred is what a machine goes by: its status, or else its spec.
func (v virtController) referred(vm string) map[string]string {
	v.t.Helper()
	machine, all := v.read(machines, vm).Object, map[string]string{}
	for _, field := range []string{"instancetype", "preference"} {
		if name, _, _ := unstructured.NestedString(machine, "spec", field, "revisionName"); name != "" {
			all[field] = name
		}
		if name, _, _ := unstructured.NestedString(machine, "status", field+"Ref", "controllerRevisionRef", "name"); name != "" {
			all[field] = name
		}
	}
	return all
}

func (v virtController) copyRevision(from, to string, owner *unstructured.Unstructured) {
	v.t.Helper()
	source, err := v.core.AppsV1().ControllerRevisions(v.namespace).Get(v.t.Context(), from, metav1.GetOptions{})
	v.must(source, err)
	v.createRevision(&appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: to, Labels: source.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())},
		},
		Data: source.Data,
	})
}

// upgrade is how KubeVirt ≥ 1.3 upgrades the revision of a machine's status: it creates
// the new one, and gives up for good if that exists; it writes the status, and leaves
// the spec alone; it deletes the old one, and asks nobody.
func (v virtController) upgrade(vm string, f stash.Fixture) []func() {
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

// compose is what KubeVirt makes of a revision: the oracle's tests say that the family
// makes the same.
func (v virtController) compose(source *appsv1.ControllerRevision, f stash.Fixture) *appsv1.ControllerRevision {
	v.t.Helper()
	var family kubevirt.Family
	s, err := family.Decode(source, f.Claim())
	v.must(s, err)
	s, err = family.Convert(s, "v1beta1")
	v.must(s, err)
	r, err := family.Compose(source, s)
	v.must(r, err)
	r.OwnerReferences = source.OwnerReferences
	return r
}
