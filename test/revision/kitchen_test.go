package revision_test

import (
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/reference"
)

// kitchen is the smallest family there is: meals are cooked by stashed recipes and
// sauces. Version v1 says how long in minutes, v2 in words.
type kitchen struct{}

const (
	kitchenGroup = "kitchen.example.com"
	versionLabel = kitchenGroup + "/version"
)

func (kitchen) Describe() revision.Description {
	return revision.Description{
		Name:      "kitchen",
		Versions:  []string{"v1", "v2"},
		Targets:   []string{"v2"},
		Resources: []schema.GroupResource{{Group: kitchenGroup, Resource: "recipes"}, {Group: kitchenGroup, Resource: "sauces"}},
		Referrers: []reference.Type{
			{Resource: schema.GroupResource{Group: kitchenGroup, Resource: "meals"}, Versions: []string{"v1"}, Subresources: []string{"status"}, Read: readMeal},
			{Resource: schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}, Versions: []string{"v1"}, Read: readSnapshot},
			{Resource: schema.GroupResource{Group: "not.installed.example.com", Resource: "feasts"}, Versions: []string{"v1"}, Read: readMeal},
		},
		Owners: []revision.OwnerType{{GroupVersionKind: schema.GroupVersionKind{Group: kitchenGroup, Version: "v1", Kind: "Meal"}, Resource: "meals"}},
	}
}

var kinds = map[string]string{"recipe": "Recipe", "sauce": "Sauce"}

// readMeal finds the names in a meal's specification, and in its status.
func readMeal(u *unstructured.Unstructured) reference.Usage {
	var h reference.Usage
	for _, part := range []string{"spec", "status"} {
		for _, key := range []string{"recipe", "sauce"} {
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
	h.Running, _, _ = unstructured.NestedBool(u.Object, "status", "cooking")
	return h
}

// readSnapshot finds what a meal that cooks was started with.
func readSnapshot(u *unstructured.Unstructured) reference.Usage {
	var h reference.Usage
	for _, key := range []string{"recipe", "sauce"} {
		if name, _, _ := unstructured.NestedString(u.Object, "data", "started", key); name != "" {
			h.References = append(h.References, reference.Reference{Path: "/data/started/" + key, Revision: name, Expected: reference.ExpectedType{Kind: kinds[key]}, Fixed: true})
		}
	}
	return h
}

func (kitchen) Decode(r *appsv1.ControllerRevision, claim reference.ExpectedType) (revision.StoredObject, error) {
	var o map[string]any
	if err := json.Unmarshal(r.Data.Raw, &o); err != nil {
		return revision.StoredObject{}, err
	}
	u := unstructured.Unstructured{Object: o}
	gv, err := schema.ParseGroupVersion(u.GetAPIVersion())
	if err != nil || gv.Group != kitchenGroup {
		return revision.StoredObject{}, revision.ErrNotInFamily
	}
	if claim.Kind != "" && claim.Kind != u.GetKind() {
		return revision.StoredObject{}, fmt.Errorf("it is a %s and is referred to as a %s", u.GetKind(), claim.Kind)
	}
	if _, ok := o["spec"].(map[string]any); !ok {
		return revision.StoredObject{}, fmt.Errorf("spec is no object")
	}
	resources := map[string]string{"Recipe": "recipes", "Sauce": "sauces"}
	return revision.StoredObject{Form: "full", Version: gv.Version, Resource: schema.GroupResource{Group: kitchenGroup, Resource: resources[u.GetKind()]}, Object: o}, nil
}

func (kitchen) Convert(s revision.StoredObject, version string) (revision.StoredObject, error) {
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
	s.Version, s.Object["apiVersion"] = version, kitchenGroup+"/"+version
	return s, nil
}

func (kitchen) Compose(old *appsv1.ControllerRevision, s revision.StoredObject) (*appsv1.ControllerRevision, error) {
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
