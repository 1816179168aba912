package stash

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Place is where a virtual machine names revisions. Both may be: InSpec | InStatus.
type Place int

const (
	// InSpec is what KubeVirt wrote before v1.4, and what somebody pins by hand.
	InSpec Place = 1 << iota
	// InStatus is what KubeVirt writes since.
	InStatus
)

// VirtualMachine refers to its own revision of each of the fixtures, at most one
// instance type and one preference, and does not run. A server takes its status only
// by a second request.
func VirtualMachine(namespace, name string, at Place, of ...Fixture) *unstructured.Unstructured {
	spec := map[string]any{
		"runStrategy": "Halted",
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": name}},
			"spec":     map[string]any{"domain": map[string]any{"devices": map[string]any{}}},
		},
	}
	status := map[string]any{"printableStatus": "Stopped"}
	for _, f := range of {
		f.referTo(f.RevisionName(name), at, spec, status)
	}
	return newObject("kubevirt.io/v1", "VirtualMachine", namespace, name, map[string]any{"spec": spec, "status": status})
}

// referTo names a revision in the spec and status of a virtual machine.
func (f Fixture) referTo(name string, at Place, spec, status map[string]any) {
	field := "instancetype"
	if f.Preference() {
		field = "preference"
	}
	matcher := map[string]any{"name": f.Object}
	if f.matcher != "" {
		matcher["kind"] = f.matcher
	}
	spec[field] = matcher
	if at&InStatus != 0 {
		record := runtime.DeepCopyJSON(matcher)
		record["controllerRevisionRef"] = map[string]any{"name": name}
		status[field+"Ref"] = record
	}
	if at&InSpec != 0 {
		matcher["revisionName"] = name
	}
}

// Running makes a copy of a virtual machine that has an instance.
func Running(vm *unstructured.Unstructured) *unstructured.Unstructured {
	vm = vm.DeepCopy()
	set(vm, "Always", "spec", "runStrategy")
	set(vm, "Running", "status", "printableStatus")
	set(vm, true, "status", "created")
	set(vm, true, "status", "ready")
	return vm
}

// StartRevision is what KubeVirt keeps of a virtual machine that it starts.
func StartRevision(vm *unstructured.Unstructured) *appsv1.ControllerRevision {
	data, err := json.Marshal(map[string]any{"spec": vm.Object["spec"]})
	if err != nil {
		panic(err) // it was JSON before
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            fmt.Sprintf("revision-start-vm-%s-%d", vm.GetUID(), max(vm.GetGeneration(), 1)),
			Namespace:       vm.GetNamespace(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(vm, vm.GroupVersionKind())},
		},
		Revision: max(vm.GetGeneration(), 1),
		Data:     runtime.RawExtension{Raw: data},
	}
}

// Snapshot is a VirtualMachineSnapshot of a virtual machine. KubeVirt gives it
// revisions of its own, as Revision makes them for it.
func Snapshot(vm *unstructured.Unstructured, name string) *unstructured.Unstructured {
	return newObject("snapshot.kubevirt.io/v1beta1", "VirtualMachineSnapshot", vm.GetNamespace(), name, map[string]any{
		"spec": map[string]any{
			"source": map[string]any{"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": vm.GetName()},
		},
		"status": map[string]any{"readyToUse": true, "phase": "Succeeded", "virtualMachineSnapshotContentName": contentName(name)},
	})
}

// SnapshotContent is what a snapshot has copied of a virtual machine, ready to use.
// Its references name the snapshot's own revisions of the fixtures; with none given
// they stay the virtual machine's.
func SnapshotContent(vm *unstructured.Unstructured, snapshot string, at Place, of ...Fixture) *unstructured.Unstructured {
	source := vm.DeepCopy().Object
	delete(source, "apiVersion")
	delete(source, "kind")
	spec, _ := source["spec"].(map[string]any)
	status, _ := source["status"].(map[string]any)
	for _, f := range of {
		f.referTo(f.RevisionName(snapshot), at, spec, status)
	}
	return newObject("snapshot.kubevirt.io/v1beta1", "VirtualMachineSnapshotContent", vm.GetNamespace(), contentName(snapshot), map[string]any{
		"spec": map[string]any{
			"virtualMachineSnapshotName": snapshot,
			"source":                     map[string]any{"virtualMachine": source},
		},
		"status": map[string]any{"readyToUse": true},
	})
}

func contentName(snapshot string) string { return "vmsnapshot-content-" + snapshot }

// Pool is a VirtualMachinePool whose template pins a virtual machine's own revisions.
func Pool(vm *unstructured.Unstructured, name string) *unstructured.Unstructured {
	labels := map[string]any{"pool": name}
	spec, _ := vm.DeepCopy().Object["spec"].(map[string]any)
	return newObject("pool.kubevirt.io/v1beta1", "VirtualMachinePool", vm.GetNamespace(), name, map[string]any{
		"spec": map[string]any{
			"replicas":               int64(0),
			"selector":               map[string]any{"matchLabels": labels},
			"virtualMachineTemplate": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": spec},
		},
	})
}

func newObject(apiVersion, kind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func set(o *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err) // the objects here have no text where objects belong
	}
}
