package revision_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/reference"
)

// testFamily is the smallest family there is: workloads use stored presets and
// profiles. Version v1 says how long in minutes, v2 in words.
type testFamily struct{}

const (
	testGroup    = "presets.example.com"
	versionLabel = testGroup + "/version"
)

func (testFamily) Describe() decision.Description {
	return decision.Description{
		Name:      "test",
		Versions:  []string{"v1", "v2"},
		Targets:   []string{"v2"},
		Resources: []schema.GroupResource{{Group: testGroup, Resource: "presets"}, {Group: testGroup, Resource: "profiles"}},
		Referrers: []reference.Type{
			{Resource: schema.GroupResource{Group: testGroup, Resource: "workloads"}, Versions: []string{"v1"}, Subresources: []string{"status"}, Read: readWorkload},
			{Resource: schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}, Versions: []string{"v1"}, Read: readSnapshot},
			{Resource: schema.GroupResource{Group: "not.installed.example.com", Resource: "others"}, Versions: []string{"v1"}, Read: readWorkload},
		},
		Owners: []decision.OwnerType{{GroupVersionKind: schema.GroupVersionKind{Group: testGroup, Version: "v1", Kind: "Workload"}, Resource: "workloads"}},
	}
}

var kinds = map[string]string{"preset": "Preset", "profile": "Profile"}

// readWorkload finds the names in a workload's specification, and in its status.
func readWorkload(u *unstructured.Unstructured) reference.Usage {
	var h reference.Usage
	for _, part := range []string{"spec", "status"} {
		for _, key := range []string{"preset", "profile"} {
			name, _, _ := unstructured.NestedString(u.Object, part, key, "revision")
			if name == "" {
				continue
			}
			sub := ""
			if part == "status" {
				sub = "status"
			}
			h.References = append(h.References, reference.Reference{
				Path: "/" + part + "/" + key + "/revision", Subresource: sub, Revision: name, Expected: reference.ExpectedType{Kind: kinds[key]},
			})
		}
	}
	h.Running, _, _ = unstructured.NestedBool(u.Object, "status", "running")
	return h
}

// readSnapshot finds what a workload that runs was started with.
func readSnapshot(u *unstructured.Unstructured) reference.Usage {
	var h reference.Usage
	for _, key := range []string{"preset", "profile"} {
		if name, _, _ := unstructured.NestedString(u.Object, "data", "started", key); name != "" {
			h.References = append(h.References, reference.Reference{Path: "/data/started/" + key, Revision: name, Expected: reference.ExpectedType{Kind: kinds[key]}, Fixed: true})
		}
	}
	return h
}

func (testFamily) Decode(r *appsv1.ControllerRevision, claim reference.ExpectedType) (decision.StoredObject, error) {
	var o map[string]any
	if err := json.Unmarshal(r.Data.Raw, &o); err != nil {
		return decision.StoredObject{}, err
	}
	u := unstructured.Unstructured{Object: o}
	gv, err := schema.ParseGroupVersion(u.GetAPIVersion())
	if err != nil || gv.Group != testGroup {
		return decision.StoredObject{}, decision.ErrNotInFamily
	}
	if claim.Kind != "" && claim.Kind != u.GetKind() {
		return decision.StoredObject{}, fmt.Errorf("it is a %s and is referred to as a %s", u.GetKind(), claim.Kind)
	}
	if _, ok := o["spec"].(map[string]any); !ok {
		return decision.StoredObject{}, fmt.Errorf("spec is no object")
	}
	resources := map[string]string{"Preset": "presets", "Profile": "profiles"}
	return decision.StoredObject{Form: "full", Version: gv.Version, Resource: schema.GroupResource{Group: testGroup, Resource: resources[u.GetKind()]}, Object: o}, nil
}

func (testFamily) Convert(s decision.StoredObject, version string) (decision.StoredObject, error) {
	if s.Version == version {
		return s, nil
	}
	if s.Version != "v1" || version != "v2" {
		return s, fmt.Errorf("no way from %s to %s", s.Version, version)
	}
	s.Object = runtime.DeepCopyJSON(s.Object)
	spec := s.Object["spec"].(map[string]any)
	spec["duration"] = fmt.Sprintf("%vm", spec["minutes"])
	delete(spec, "minutes")
	for key := range maps.Clone(spec) {
		if key != "duration" {
			s.Losses = append(s.Losses, "spec."+key)
		}
	}
	s.Version, s.Object["apiVersion"] = version, testGroup+"/"+version
	return s, nil
}

func (testFamily) Equal(a, b decision.StoredObject) bool {
	return a.Version == b.Version && reflect.DeepEqual(a.Object["spec"], b.Object["spec"])
}

// Holds: a name of this family says nothing.
func (testFamily) Holds(*appsv1.ControllerRevision, string) string { return "" }

func (testFamily) Software(map[schema.GroupResource]decision.CRD) decision.Software {
	return decision.Software{Release: "test"}
}

func (testFamily) Compose(old *appsv1.ControllerRevision, s decision.StoredObject) (*appsv1.ControllerRevision, error) {
	owner := metav1.GetControllerOf(old)
	if owner == nil {
		return nil, fmt.Errorf("no controller")
	}
	data, err := json.Marshal(s.Object)
	if err != nil {
		return nil, err
	}
	name, _, _ := unstructured.NestedString(s.Object, "metadata", "name")
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: owner.Name + "-" + name + "-" + s.Version, Labels: map[string]string{versionLabel: s.Version}},
		Data:       runtime.RawExtension{Raw: data},
	}, nil
}
