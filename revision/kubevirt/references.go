package kubevirt

import (
	"bytes"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/revision/reference"
)

// startRevisionPrefix begins the name of what a VirtualMachine was started with,
// followed by the machine's UID and generation.
const startRevisionPrefix = "revision-start-vm-"

var virtualMachines = schema.GroupResource{Group: "kubevirt.io", Resource: "virtualmachines"}

// referrers are VirtualMachines, the copies of them in snapshots' contents, and the
// templates of pools; and the ControllerRevisions that KubeVirt keeps of machines
// that were started and of pools, whose references are fixed.
//
// What runs is told by the VirtualMachine, which is told to run while there is an
// instance of it. A revision of a machine that was started does not say whether it
// runs still. While a machine is snapshotted or restored its references are being
// copied, and the content of a snapshot is not complete before the snapshot is ready.
func referrers() []reference.Type {
	return []reference.Type{
		{
			Resource: virtualMachines, Versions: []string{"v1"},
			Subresources: []string{"status"}, Read: readVM,
		},
		{
			Resource: schema.GroupResource{Group: "snapshot.kubevirt.io", Resource: "virtualmachinesnapshotcontents"},
			Versions: []string{v1beta1, v1alpha1},
			Read:     readSnapshotContent,
		},
		{
			Resource: schema.GroupResource{Group: "pool.kubevirt.io", Resource: "virtualmachinepools"},
			Versions: []string{v1beta1, v1alpha1},
			Read:     readPool,
		},
		{Resource: schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}, Versions: []string{"v1"}, Read: readRevision, Mentions: mentionsRevision},
	}
}

func readVM(vm *unstructured.Unstructured) reference.Usage {
	status, pinned := object(vm.Object, "status"), pins(vm.Object, "")
	for i := range pinned {
		pinned[i].Pin = true
		for _, m := range matchers {
			if m.pin == pinned[i].Path {
				pinned[i].Recorded = text(object(status, m.record, "controllerRevisionRef"), "name")
			}
		}
	}
	return reference.Usage{
		References: append(pinned, records(vm.Object, "", "status")...),
		Running:    isRunning(status),
		NotReady:   copying(status),
	}
}

// copying says what copies the machine's references at the moment.
func copying(status map[string]any) string {
	if name := text(status, "snapshotInProgress"); name != "" {
		return "VirtualMachineSnapshot " + name + " is being taken of it"
	}
	if name := text(status, "restoreInProgress"); name != "" {
		return "VirtualMachineRestore " + name + " is under way"
	}
	return ""
}

// isRunning takes what is created for running: from there on KubeVirt may read the
// revisions for the instance again, until it is gone. What is printed says the same,
// later and for people; either is enough, since to wait for a machine that stands
// costs time, and not to wait for one that runs costs the machine.
func isRunning(status map[string]any) bool {
	switch status["printableStatus"] {
	case "Starting", "Running", "Paused", "Stopping", "Terminating", "Migrating", "WaitingForReceiver", "Unknown":
		return true
	}
	return truth(status, "created")
}

// readSnapshotContent finds what a copy of a VirtualMachine names. A restore onto the
// machine looks each name up with the VirtualMachine's name in place of the snapshot's.
func readSnapshotContent(content *unstructured.Unstructured) reference.Usage {
	const path = "/spec/source/virtualMachine"
	vm := object(content.Object, "spec", "source", "virtualMachine")
	h := reference.Usage{References: append(pins(vm, path), records(vm, path, "")...)}
	restored := reference.Counterpart{
		Resource: virtualMachines,
		Owner:    text(object(vm, "metadata"), "name"),
		Part:     text(object(content.Object, "spec"), "virtualMachineSnapshotName"),
	}
	if restored.Owner != "" && restored.Part != "" {
		for i := range h.References {
			h.References[i].Counterpart = &restored
		}
	}
	if !truth(object(content.Object, "status"), "readyToUse") {
		h.NotReady = "the snapshot is not ready to use"
	}
	return h
}

func readPool(pool *unstructured.Unstructured) reference.Usage {
	return reference.Usage{References: pins(object(pool.Object, "spec", "virtualMachineTemplate"), "/spec/virtualMachineTemplate")}
}

// readRevision reads what is no object of this family: those have a kind, or a
// spec that is no object.
func readRevision(r *unstructured.Unstructured) reference.Usage {
	data := object(r.Object, "data")
	if _, whole := data["kind"]; whole {
		return reference.Usage{}
	}
	references := append(pins(data, "/data"), pins(object(data, "virtualMachineTemplate"), "/data/virtualMachineTemplate")...)
	for i := range references {
		references[i].Fixed = true
	}
	return reference.Usage{References: references}
}

// mentionsRevision reports whether data may contain a fixed reference, by the key that all of
// them have. A client may have escaped letters of the key, so data with escapes may contain one.
func mentionsRevision(data []byte) bool {
	return bytes.Contains(data, []byte("revisionName")) || bytes.Contains(data, []byte(`\u`))
}

// users are restores: between its first read of a snapshot's content and its end a restore
// copies the snapshot's revisions, and compares them with the target's.
func users() []reference.Type {
	return []reference.Type{
		{
			Resource: schema.GroupResource{Group: "snapshot.kubevirt.io", Resource: "virtualmachinerestores"},
			Versions: []string{v1beta1, v1alpha1},
			Read:     readRestore,
		},
	}
}

func readRestore(restore *unstructured.Unstructured) reference.Usage {
	if truth(object(restore.Object, "status"), "complete") {
		return reference.Usage{}
	}
	spec := object(restore.Object, "spec")
	target := object(spec, "target")
	return reference.Usage{
		NotReady: "it is not complete",
		Reads: []reference.Owner{
			{Kind: "VirtualMachineSnapshot", Name: text(spec, "virtualMachineSnapshotName")},
			{Kind: text(target, "kind"), Name: text(target, "name")},
		},
	}
}

// A matcher is one of the two fields in which a VirtualMachine says what it is made
// by, and what its status recorded of it.
type matcher struct {
	field, record string
	preference    bool
	// pin and recorded are the paths of the names in a VirtualMachine.
	pin, recorded string
}

var matchers = []matcher{
	{
		field: "instancetype", record: "instancetypeRef",
		pin: "/spec/instancetype/revisionName", recorded: "/status/instancetypeRef/controllerRevisionRef/name",
	},
	{
		field: "preference", record: "preferenceRef", preference: true,
		pin: "/spec/preference/revisionName", recorded: "/status/preferenceRef/controllerRevisionRef/name",
	},
}

// pins are the revisions that the spec of a VirtualMachine names. vm is at path.
func pins(vm map[string]any, path string) []reference.Reference {
	var found []reference.Reference
	for _, m := range matchers {
		in := object(vm, "spec", m.field)
		if name := text(in, "revisionName"); name != "" {
			found = append(found, reference.Reference{
				Path:     path + m.pin,
				Revision: name,
				Expected: reference.ExpectedType{Kind: canonicalKind(text(in, "kind"), m.preference), Name: text(in, "name")},
			})
		}
	}
	return found
}

// records are the revisions that the status of a VirtualMachine names. Where it
// names no kind, the spec's is meant if the spec names the same object.
func records(vm map[string]any, path, subresource string) []reference.Reference {
	var found []reference.Reference
	for _, m := range matchers {
		record, in := object(vm, "status", m.record), object(vm, "spec", m.field)
		name := text(object(record, "controllerRevisionRef"), "name")
		if name == "" {
			continue
		}
		expected := reference.ExpectedType{Kind: text(record, "kind"), Name: text(record, "name")}
		if expected.Name == "" || expected.Name == text(in, "name") {
			expected.Name = text(in, "name")
			if expected.Kind == "" {
				expected.Kind = text(in, "kind")
			}
		}
		expected.Kind = canonicalKind(expected.Kind, m.preference)
		found = append(found, reference.Reference{
			Path:        path + m.recorded,
			Subresource: subresource,
			Revision:    name,
			Expected:    expected,
		})
	}
	return found
}

// object is the object at a path, and nil where there is none.
func object(in map[string]any, path ...string) map[string]any {
	for _, key := range path {
		in, _ = in[key].(map[string]any)
	}
	return in
}

func text(in map[string]any, key string) string {
	s, _ := in[key].(string)
	return s
}

func truth(in map[string]any, key string) bool {
	b, _ := in[key].(bool)
	return b
}
