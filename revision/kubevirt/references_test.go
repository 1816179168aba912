package kubevirt

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/revision/reference"
)

func TestReferences(t *testing.T) {
	t.Parallel()
	const (
		spec   = `{"instancetype":{"name":"u1","kind":"virtualmachineInstancetypes","revisionName":"old-it"},"preference":{"name":"fedora","revisionName":"old-p"}}`
		status = `{"instancetypeRef":{"name":"u1","kind":"VirtualMachineInstancetype","controllerRevisionRef":{"name":"new-it"}},` +
			`"preferenceRef":{"name":"fedora","controllerRevisionRef":{"name":"new-p"}}}`
	)
	instancetypeClaim := reference.ExpectedType{Kind: instancetype, Name: "u1"}
	preferenceClaim := reference.ExpectedType{Kind: "VirtualMachineClusterPreference", Name: "fedora"}
	pinned := func(path string, fixed bool) []reference.Reference {
		return []reference.Reference{
			{Path: path + "/spec/instancetype/revisionName", Revision: "old-it", Expected: instancetypeClaim, Fixed: fixed},
			{Path: path + "/spec/preference/revisionName", Revision: "old-p", Expected: preferenceClaim, Fixed: fixed},
		}
	}
	recorded := func(path, subresource string) []reference.Reference {
		return []reference.Reference{
			{Path: path + "/status/instancetypeRef/controllerRevisionRef/name", Subresource: subresource, Revision: "new-it", Expected: instancetypeClaim},
			{Path: path + "/status/preferenceRef/controllerRevisionRef/name", Subresource: subresource, Revision: "new-p", Expected: preferenceClaim},
		}
	}
	// inMachine are pins that the status records others for; recorded is empty where it records none.
	inMachine := func(references []reference.Reference, recorded ...string) []reference.Reference {
		for i := range references {
			references[i].Pin = true
			if recorded != nil {
				references[i].Recorded = recorded[i]
			}
		}
		return references
	}
	restoredOnto := func(vm, snapshot string, references []reference.Reference) []reference.Reference {
		for i := range references {
			references[i].Counterpart = &reference.Counterpart{Resource: virtualMachines, Owner: vm, Part: snapshot}
		}
		return references
	}
	tests := map[string]struct {
		reason   string
		resource string
		object   string
		want     reference.Usage
	}{
		"spec and status": {
			reason: "they may name different revisions", resource: "virtualmachines", object: `{"spec":` + spec + `,"status":` + status + `}`,
			want: reference.Usage{References: append(inMachine(pinned("", false), "new-it", "new-p"), recorded("", "status")...)},
		},
		"status alone": {
			reason:   "a matcher without a revision is what KubeVirt leaves since v1.3; its kind is meant in status too",
			resource: "virtualmachines",
			object: `{"spec":{"instancetype":{"name":"u1","kind":"VirtualMachineInstancetype","revisionName":""}},` +
				`"status":{"instancetypeRef":{"controllerRevisionRef":{"name":"new-it"}}}}`,
			want: reference.Usage{References: recorded("", "status")[:1]},
		},
		"status of another object": {
			reason:   "the machine was switched, and KubeVirt has not recorded it yet",
			resource: "virtualmachines",
			object: `{"spec":{"preference":{"name":"windows","kind":"VirtualMachinePreference"}},` +
				`"status":{"preferenceRef":{"name":"fedora","controllerRevisionRef":{"name":"new-p"}}}}`,
			want: reference.Usage{References: recorded("", "status")[1:]},
		},
		"an unknown kind": {
			reason: "reported as it is, so that Decode refuses it", resource: "virtualmachines",
			object: `{"spec":{"preference":{"kind":"Pod","revisionName":"x"}}}`,
			want: reference.Usage{References: []reference.Reference{
				{Path: "/spec/preference/revisionName", Revision: "x", Expected: reference.ExpectedType{Kind: "Pod"}, Pin: true},
			}},
		},
		"nothing": {
			reason: "a matcher that waits for its revision, a record without one", resource: "virtualmachines",
			object: `{"spec":{"instancetype":{"name":"u1"},"preference":null},"status":{"instancetypeRef":{"name":"u1"}}}`,
		},
		"created":      {resource: "virtualmachines", object: `{"status":{"created":true}}`, want: reference.Usage{Running: true}, reason: "an instance exists"},
		"paused":       {resource: "virtualmachines", object: `{"status":{"printableStatus":"Paused"}}`, want: reference.Usage{Running: true}, reason: "it is printed"},
		"stopped":      {resource: "virtualmachines", object: `{"status":{"printableStatus":"Stopped"}}`, reason: "what every new machine has"},
		"snapshotting": {resource: "virtualmachines", object: `{"status":{"snapshotInProgress":"nightly"}}`, want: reference.Usage{NotReady: "VirtualMachineSnapshot nightly is being taken of it"}, reason: "a copy is being made"},
		"restoring":    {resource: "virtualmachines", object: `{"status":{"restoreInProgress":"back"}}`, want: reference.Usage{NotReady: "VirtualMachineRestore back is under way"}, reason: "a copy is being read"},
		"snapshot": {
			reason: "its copy of the status lies in a spec", resource: "virtualmachinesnapshotcontents",
			object: `{"spec":{"source":{"virtualMachine":{"spec":` + spec + `,"status":` + status + `}}},"status":{"readyToUse":true}}`,
			want:   reference.Usage{References: append(pinned("/spec/source/virtualMachine", false), recorded("/spec/source/virtualMachine", "")...)},
		},
		"snapshot of a machine": {
			reason: "a restore looks each name up with the machine's name in it", resource: "virtualmachinesnapshotcontents",
			object: `{"spec":{"virtualMachineSnapshotName":"nightly","source":{"virtualMachine":{"metadata":{"name":"web"},"spec":` + spec + `}}},"status":{"readyToUse":true}}`,
			want:   reference.Usage{References: restoredOnto("web", "nightly", pinned("/spec/source/virtualMachine", false))},
		},
		"snapshot under way": {
			reason: "KubeVirt may still write to it", resource: "virtualmachinesnapshotcontents", object: `{"spec":{"source":{"persistentVolumeClaim":{}}}}`,
			want: reference.Usage{NotReady: "the snapshot is not ready to use"},
		},
		"pool": {
			reason: "every machine of the pool gets it", resource: "virtualmachinepools",
			object: `{"spec":{"virtualMachineTemplate":{"spec":` + spec + `}}}`,
			want:   reference.Usage{References: pinned("/spec/virtualMachineTemplate", false)},
		},
		"start revision": {
			reason: "data can't be changed", resource: "controllerrevisions", object: `{"data":{"spec":` + spec + `}}`,
			want: reference.Usage{References: pinned("/data", true)},
		},
		"pool revision": {
			reason: "data can't be changed", resource: "controllerrevisions", object: `{"data":{"replicas":3,"virtualMachineTemplate":{"spec":` + spec + `}}}`,
			want: reference.Usage{References: pinned("/data/virtualMachineTemplate", true)},
		},
		"a stored object": {reason: "it refers to nothing", resource: "controllerrevisions", object: `{"data":` + whole("v1beta1", instancetype, spec) + `}`},
		"a bare spec":     {reason: "its spec is text", resource: "controllerrevisions", object: `{"data":` + bare("", spec) + `}`},
		"another patch":   {reason: "a StatefulSet's", resource: "controllerrevisions", object: `{"data":{"spec":{"template":{}}}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o unstructured.Unstructured
			if err := json.Unmarshal([]byte(test.object), &o.Object); err != nil {
				t.Fatal(err)
			}
			for _, referrer := range referrers() {
				if referrer.Resource.Resource != test.resource {
					continue
				}
				got := referrer.Read(&o)
				if len(got.References) == 0 {
					got.References = nil
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", test.reason, diff)
				}
				return
			}
			t.Fatalf("no type reads %s", test.resource)
		})
	}
}

// TestMentionsRevision: data that are not decoded have no reference, in whatever way they are
// written.
func TestMentionsRevision(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		data   string
		want   bool
	}{
		"a start revision":                     {"KubeVirt keeps the VirtualMachine that it started", `{"spec":{"instancetype":{"revisionName":"old-it"}}}`, true},
		"an escaped key":                       {"JSON may escape any letter", `{"spec":{"instancetype":{"\u0072evisionName":"old-it"}}}`, true},
		"a stored object":                      {"it refers to nothing", `{"kind":"VirtualMachineInstancetype","spec":{"cpu":{"guest":1}}}`, false},
		"a VirtualMachine without a reference": {"likewise", `{"spec":{"instancetype":{"name":"u1"}}}`, false},
	} {
		if got := mentionsRevision([]byte(tc.data)); got != tc.want {
			t.Errorf("%s: %t, want %t: %s", name, got, tc.want, tc.reason)
		}
		var data map[string]any
		if err := json.Unmarshal([]byte(tc.data), &data); err != nil {
			t.Fatal(err)
		}
		found := len(readRevision(&unstructured.Unstructured{Object: map[string]any{"data": data}}).References) > 0
		if found != tc.want {
			t.Errorf("%s: has references: %t, want %t", name, found, tc.want)
		}
	}
}
