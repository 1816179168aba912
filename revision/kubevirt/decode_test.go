package kubevirt

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/reference"
)

const (
	aUID         = "6fc1a5c4-2b8e-4b8a-9a57-0d6f2f3f9c11"
	instancetype = "VirtualMachineInstancetype"
	preference   = "VirtualMachinePreference"
)

// stored is a revision of virtual machine db-0, called as KubeVirt before v1.3
// called it.
func storing(data string) *appsv1.ControllerRevision {
	yes := true
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: "db-0-u1.medium-" + aUID + "-2", Namespace: "prod",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: "db-0", UID: "1", Controller: &yes}},
		},
		Data: runtime.RawExtension{Raw: []byte(data)},
	}
}

// ownedBy changes the controller.
func ownedBy(r *appsv1.ControllerRevision, apiVersion, kind, name string) *appsv1.ControllerRevision {
	r.OwnerReferences[0].APIVersion, r.OwnerReferences[0].Kind, r.OwnerReferences[0].Name = apiVersion, kind, name
	return r
}

func withoutOwner(r *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	r.OwnerReferences = nil
	return r
}

func called(r *appsv1.ControllerRevision, name string) *appsv1.ControllerRevision {
	r.Name = name
	return r
}

func labelled(r *appsv1.ControllerRevision, pairs ...string) *appsv1.ControllerRevision {
	r.Labels = map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		r.Labels[Group+"/object-"+pairs[i]] = pairs[i+1]
	}
	return r
}

func bare(apiVersion, spec string) string {
	return `{"apiVersion":"` + apiVersion + `","spec":"` + base64.StdEncoding.EncodeToString([]byte(spec)) + `"}`
}

func whole(version, kind, spec string) string {
	return `{"apiVersion":"` + Group + "/" + version + `","kind":"` + kind + `","metadata":{"name":"u1.medium","uid":"` + aUID +
		`","generation":2,"creationTimestamp":null},"spec":` + spec + `}`
}

func TestDecode(t *testing.T) {
	t.Parallel()
	expected := func(kind string) reference.ExpectedType { return reference.ExpectedType{Kind: kind, Name: "u1.medium"} }
	tests := map[string]struct {
		reason   string
		of       *appsv1.ControllerRevision
		expected reference.ExpectedType
		want     decision.StoredObject
	}{
		"a spec, empty apiVersion": {
			reason:   "KubeVirt v0.56 wrote it so, the kind is in nothing but the reference",
			of:       storing(bare("", `{"cpu":{"guest":2},"memory":{"guest":"4Gi"}}`)),
			expected: expected("VirtualMachineClusterInstancetype"),
			want: decision.StoredObject{
				Form: FormSpecRevision, Version: "v1alpha1", Resource: crdOf("virtualmachineclusterinstancetypes"),
				Object: map[string]any{
					"apiVersion": "instancetype.kubevirt.io/v1alpha1", "kind": "VirtualMachineClusterInstancetype",
					"metadata": map[string]any{"name": "u1.medium", "uid": aUID, "generation": int64(2)},
					"spec":     map[string]any{"cpu": map[string]any{"guest": int64(2)}, "memory": map[string]any{"guest": "4Gi"}},
				},
			},
		},
		"a spec, labelled": {
			reason: "no object refers to it, but the label names the kind",
			of:     labelled(storing(bare(Group+"/v1alpha1", `{"cpu":{"preferredCPUTopology":"preferCores"}}`)), "kind", preference),
			want: decision.StoredObject{
				Form: FormSpecRevision, Version: "v1alpha1", Resource: crdOf("virtualmachinepreferences"),
				Object: map[string]any{
					"apiVersion": "instancetype.kubevirt.io/v1alpha1", "kind": preference,
					"metadata": map[string]any{"name": "u1.medium", "uid": aUID, "generation": int64(2)},
					"spec":     map[string]any{"cpu": map[string]any{"preferredCPUTopology": "preferCores"}},
				},
			},
		},
		"a whole object": {
			reason: "what it does not know is a loss, and stays in it, with its number as it was written",
			of:     storing(whole("v1alpha2", preference, `{"volumes":{"size":1e30},"devices":{"preferredDiskBus":"virtio"},"nodeSelector":{}}`)),
			want: decision.StoredObject{
				Form: FormObject, Version: "v1alpha2", Resource: crdOf("virtualmachinepreferences"),
				Object: map[string]any{
					"apiVersion": "instancetype.kubevirt.io/v1alpha2", "kind": preference,
					"metadata": map[string]any{"name": "u1.medium", "uid": aUID, "generation": int64(2), "creationTimestamp": nil},
					"spec": map[string]any{
						"volumes": map[string]any{"size": json.Number("1e30")}, "devices": map[string]any{"preferredDiskBus": "virtio"}, "nodeSelector": map[string]any{},
					},
				},
				Losses: []string{"spec.nodeSelector", "spec.volumes.size"},
			},
		},
		"v1beta1 of a later release": {
			reason:   "v1beta1 grew, and what it grew is no loss",
			of:       storing(whole("v1beta1", preference, `{"preferredArchitecture":"arm64"}`)),
			expected: expected("VirtualMachineClusterPreference"), // another scope is no other role
			want: decision.StoredObject{
				Form: FormObject, Version: "v1beta1", Resource: crdOf("virtualmachinepreferences"),
				Object: map[string]any{
					"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": preference,
					"metadata": map[string]any{"name": "u1.medium", "uid": aUID, "generation": int64(2), "creationTimestamp": nil},
					"spec":     map[string]any{"preferredArchitecture": "arm64"},
				},
			},
		},
		"without an owner": {
			reason: "its owner is gone, and it may be restored",
			of:     withoutOwner(storing(`{"apiVersion":"instancetype.kubevirt.io/v1alpha2","kind":"VirtualMachinePreference"}`)),
			want: decision.StoredObject{
				Form: FormObject, Version: "v1alpha2", Resource: crdOf("virtualmachinepreferences"),
				Object: map[string]any{"apiVersion": "instancetype.kubevirt.io/v1alpha2", "kind": preference},
			},
		},
		"v1": {
			reason: "a version of the future is recognised, not looked into; labels may lie",
			of:     labelled(storing(`{"apiVersion":"instancetype.kubevirt.io/v1","kind":"VirtualMachinePreference","spec":7}`), "version", "v1beta1"),
			want: decision.StoredObject{
				Form: FormObject, Version: "v1", Resource: crdOf("virtualmachinepreferences"),
				Object:  map[string]any{"apiVersion": "instancetype.kubevirt.io/v1", "kind": preference, "spec": int64(7)},
				Current: true,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Family{}.Decode(test.of, test.expected)
			if err != nil {
				t.Fatalf("%s: %v", test.reason, err)
			}
			if test.want.Form == FormObject {
				test.want.Data = test.of.Data.Raw
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func crdOf(plural string) schema.GroupResource {
	return schema.GroupResource{Group: "instancetype.kubevirt.io", Resource: plural}
}

// Both roles read an empty spec: the reference decides.
func TestDecodeWhatReadsAsBoth(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{`{}`, `{"cpu":{}}`, `null`} {
		for _, kind := range []string{instancetype, preference, "VirtualMachineClusterInstancetype", "VirtualMachineClusterPreference"} {
			s, err := Family{}.Decode(storing(bare("", spec)), reference.ExpectedType{Kind: kind})
			if err != nil || s.Object["kind"] != kind {
				t.Errorf("%s taken for a %s is a %v: %v", spec, kind, s.Object["kind"], err)
			}
		}
	}
}

func TestDecodeForeign(t *testing.T) {
	t.Parallel()
	const vmSpec = `{"running":true,"instancetype":{"name":"u1.medium","revisionName":"db-0-u1.medium"},"template":{"spec":{"domain":{"devices":{}}}}}`
	start := startRevisionPrefix + aUID + "-4"
	asked := reference.ExpectedType{Kind: instancetype}
	tests := map[string]struct {
		reason   string
		of       *appsv1.ControllerRevision
		expected reference.ExpectedType
	}{
		"start revision":            {of: called(storing(`{"spec":`+vmSpec+`}`), start), reason: "its owner is a VirtualMachine as well"},
		"start revision, renamed":   {of: storing(`{"spec":` + vmSpec + `}`), reason: "the data decides"},
		"start revision, patch":     {of: called(storing(`{"spec":{"$patch":"replace","template":{}}}`), start), reason: "older releases"},
		"start revision, corrupt":   {of: called(storing(`{"spec":`), start), reason: "by its name it is not ours"},
		"start revision, asked for": {of: called(storing(`{"spec":`+vmSpec+`}`), start), expected: asked, reason: "a reference does not make it ours"},
		"start revision, labelled":  {of: labelled(storing(`{"spec":`+vmSpec+`}`), "version", "v1alpha1"), reason: "labels lie"},
		"pool revision": {
			of:     ownedBy(storing(`{"replicas":3,"virtualMachineTemplate":{"spec":`+vmSpec+`}}`), "pool.kubevirt.io/v1beta1", "VirtualMachinePool", "db"),
			reason: "it holds the pool's spec",
		},
		"StatefulSet": {
			of:     ownedBy(storing(`{"spec":{"template":{"$patch":"replace"}}}`), "apps/v1", "StatefulSet", "web"),
			reason: "a patch without a version",
		},
		"StatefulSet, corrupt":      {of: ownedBy(storing(`{`), "apps/v1", "StatefulSet", "web"), reason: "not even read"},
		"DaemonSet, enormous":       {of: ownedBy(storing(strings.Repeat(" ", 1<<20)), "apps/v1", "DaemonSet", "web"), reason: "not even read"},
		"another group":             {of: storing(`{"apiVersion":"example.com/v1","kind":"VirtualMachinePreference"}`), expected: asked, reason: "the group decides"},
		"a string, other group":     {of: storing(`{"apiVersion":"example.com/v1","spec":"e30="}`), reason: "spec is a string elsewhere too"},
		"nothing":                   {of: storing(`{}`), reason: "no spec"},
		"without an owner, corrupt": {of: withoutOwner(storing(`{`)), reason: "nothing says that it is ours"},
		"without an owner string":   {of: called(withoutOwner(storing(bare("", `{}`))), "settings-2"), reason: "spec is a string elsewhere too"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if s, err := (Family{}).Decode(test.of, test.expected); !errors.Is(err, decision.ErrNotInFamily) {
				t.Errorf("%s: got %v, %v, want ErrForeign", test.reason, s, err)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	asked := reference.ExpectedType{Kind: instancetype}
	deep := strings.Repeat(`{"a":`, maxDepth+1) + `1` + strings.Repeat(`}`, maxDepth+1)
	v1beta1Spec := func(spec string) *appsv1.ControllerRevision { return storing(whole("v1beta1", instancetype, spec)) }
	tests := map[string]struct {
		reason   string
		of       *appsv1.ControllerRevision
		expected reference.ExpectedType
		form     string
		want     string
	}{
		"a mebibyte":           {of: storing(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`), want: "1048584 bytes", reason: "more than any instance type has"},
		"deep":                 {of: storing(deep), want: "64 levels", reason: "who recurses might fall"},
		"as deep as can be":    {of: storing(strings.Repeat(`[`, 200_000)), want: "not JSON", reason: "the decoder has a limit of its own"},
		"cut":                  {of: storing(`{"apiVersion":"instancetype.kub`), want: "not JSON", reason: "the data is corrupt"},
		"more behind":          {of: storing(`{} {}`), want: "not JSON", reason: "which of them is it"},
		"invalid UTF-8":        {of: storing("{\"apiVersion\":\"\xff\"}"), want: "UTF-8", reason: "would be replaced silently"},
		"a key twice":          {of: v1beta1Spec(`{"cpu":{"guest":1,"guest":2}}`), want: `"spec.cpu.guest" occurs twice`, reason: "which of them is it"},
		"a kind twice":         {of: storing(`{"kind":"A","kind":"B"}`), want: `"kind" occurs twice`, reason: "which of them is it"},
		"wrong type":           {of: v1beta1Spec(`{"gpus":[{"name":"a"},{"name":1}]}`), form: FormObject, want: `"spec.gpus[1].name" is 1`, reason: "KubeVirt could not read it"},
		"a fraction":           {of: v1beta1Spec(`{"cpu":{"guest":1.5}}`), form: FormObject, want: `"spec.cpu.guest" is 1.5`, reason: "KubeVirt could not read it"},
		"a huge number":        {of: v1beta1Spec(`{"cpu":{"guest":4294967296}}`), form: FormObject, want: `"spec.cpu.guest"`, reason: "32 bits"},
		"a number of megabits": {of: v1beta1Spec(`{"cpu":{"guest":` + strings.Repeat("9", 300_000) + `}}`), form: FormObject, want: `"spec.cpu.guest" is a number`, reason: "64 bits and more"},
		"no quantity":          {of: v1beta1Spec(`{"memory":{"guest":"much"}}`), form: FormObject, want: `"spec.memory.guest" is "much"`, reason: "KubeVirt could not read it"},
		"a spec in a list":     {of: v1beta1Spec(`[]`), form: FormObject, want: `"spec" is a list`, reason: "KubeVirt could not read it"},
		"no kind":              {of: storing(`{"apiVersion":"instancetype.kubevirt.io/v1beta1","spec":{}}`), want: "has no kind", reason: "ours by its group"},
		"no version":           {of: storing(`{"apiVersion":"instancetype.kubevirt.io","kind":"VirtualMachinePreference"}`), want: "without a version", reason: "ours by its group"},
		"a list of ours":       {of: storing(`{"apiVersion":"instancetype.kubevirt.io/v1beta1","kind":"VirtualMachinePreferenceList"}`), form: FormObject, want: "neither", reason: "one of our kinds, not one that is stored"},
		"kind in small letters": {
			of: storing(`{"apiVersion":"instancetype.kubevirt.io/v1beta1","kind":"virtualmachinepreference"}`), form: FormObject, want: "neither",
			reason: "references may spell it as they like, objects may not",
		},
		"no data":              {of: storing(""), want: "not JSON", reason: "a VirtualMachine's own"},
		"no object":            {of: storing(`[]`), want: "no object", reason: "a VirtualMachine's own"},
		"no object, asked for": {of: withoutOwner(storing(`"text"`)), expected: asked, want: "no object", reason: "an object refers to it"},
		"a StatefulSet's, asked for": {
			of: ownedBy(storing(whole("v1alpha2", preference, `{}`)), "apps/v1", "StatefulSet", "web"), expected: asked, form: FormObject, want: "controller is StatefulSet web", reason: "an object refers to it, and its owner may remove it",
		},
		"not in base64":        {of: storing(`{"apiVersion":"","spec":"{}"}`), expected: asked, form: FormSpecRevision, want: "base64", reason: "corrupt"},
		"cut inside":           {of: storing(bare("", `{"cpu":`)), expected: asked, form: FormSpecRevision, want: "in its spec: it is not JSON", reason: "corrupt"},
		"twice inside":         {of: storing(bare("", `{"cpu":{},"cpu":{}}`)), expected: asked, form: FormSpecRevision, want: `in its spec: "cpu" occurs twice`, reason: "which of them is it"},
		"wrong type inside":    {of: storing(bare("", `{"cpu":{"guest":"2"}}`)), expected: asked, form: FormSpecRevision, want: `"spec.cpu.guest" is "2"`, reason: "KubeVirt could not read it"},
		"a spec of v1beta1":    {of: storing(bare(Group+"/v1beta1", `{}`)), expected: asked, want: "is of v1alpha1", reason: "no release of KubeVirt wrote that"},
		"more beside the spec": {of: storing(`{"apiVersion":"","spec":"e30=","status":{}}`), expected: asked, want: "status", reason: "no release of KubeVirt wrote that"},
		"called as ours are":   {of: withoutOwner(storing(bare("", `{}`))), form: FormSpecRevision, want: "no object refers to it", reason: "a backup brings revisions back before machines"},
		"unknown":              {of: storing(bare("", `{}`)), form: FormSpecRevision, want: "no object refers to it", reason: "an unreferenced revision without a kind"},
		"belied by its spec": {
			of: storing(bare("", `{"cpu":{"preferredCPUTopology":"preferCores"}}`)), expected: asked, form: FormSpecRevision,
			want: "holds the spec of a preference", reason: "the reference is wrong",
		},
		"belied by its kind": {
			of: storing(whole("v1beta1", preference, `{}`)), expected: asked, form: FormObject,
			want: "takes it for a VirtualMachineInstancetype", reason: "the reference is wrong",
		},
		"taken for something else": {
			of: storing(whole("v1beta1", preference, `{}`)), expected: reference.ExpectedType{Kind: "Pod"}, form: FormObject, want: `"Pod"`, reason: "the reference is wrong",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Family{}.Decode(test.of, test.expected)
			if err == nil || errors.Is(err, decision.ErrNotInFamily) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: error %v, want one with %q", test.reason, err, test.want)
			}
			if err != nil && (len(err.Error()) > 1000 || !strings.Contains(err.Error(), "prod/db-0-u1.medium")) {
				t.Errorf("error is too long or does not name the revision: %.1000s", err)
			}
			if s.Form != test.form || s.Object != nil {
				t.Errorf("object %+v, want nothing but form %q", s, test.form)
			}
		})
	}
}

// Who looks for references must not wait for ever, or run out of memory, whatever is
// in a revision.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(bare("", `{"cpu":{"guest":2},"memory":{"guest":"4Gi"}}`)), instancetype)
	f.Add([]byte(bare(Group+"/v1alpha1", `{"cpu":{"preferredCPUTopology":"preferCores"}}`)), "virtualmachineclusterpreferences")
	f.Add([]byte(whole("v1alpha2", preference, `{"volumes":{"preferredStorageClassName":"fast"}}`)), "")
	f.Add([]byte(whole("v1beta1", instancetype, `{"cpu":{"guest":1},"memory":{"guest":1024},"gpus":[{"name":"g","deviceName":"d"}]}`)), "")
	f.Add([]byte(`{"spec":{"running":true}}`), "")
	f.Add([]byte(strings.Repeat(`{"spec":`, 100)), instancetype)
	f.Add([]byte(`{"apiVersion":"instancetype.kubevirt.io/v1alpha1","apiVersion":"","spec":"AA=="}`), preference)
	f.Fuzz(func(t *testing.T, data []byte, kind string) {
		r := storing("")
		r.Data.Raw = data
		s, err := Family{}.Decode(r, reference.ExpectedType{Kind: kind})
		if err != nil {
			if s.Object != nil || len(err.Error()) > 2000 {
				t.Errorf("object %v with error of %d bytes", s, len(err.Error()))
			}
			return
		}
		if len(s.Losses) > maxUnknown || s.Resource.Empty() || s.Form == "" || s.Version == "" {
			t.Errorf("incomplete object %+v", s)
		}
		var start struct{ Spec map[string]any }
		if json.Unmarshal(data, &start) == nil && s.Form == FormSpecRevision {
			t.Errorf("what has an object for its spec was taken for a spec by itself: %s", data)
		}
		composed, err := Family{}.Compose(r, s)
		if err == nil && len(data) > 0 && s.Form == FormObject && !bytes.Equal(composed.Data.Raw, data) {
			t.Errorf("data was rewritten without being converted: %s is now %s", data, composed.Data.Raw)
		}
		if converted, err := (Family{}).Convert(s, v1beta1); err == nil {
			if found := checkObject(v1beta1, mustKind(converted), converted.Object); found.err != nil {
				t.Errorf("converted to what can't be read: %v", found.err)
			}
		}
	})
}

func mustKind(s decision.StoredObject) kind {
	k, _ := kindOf(s.Object["kind"].(string))
	return k
}
