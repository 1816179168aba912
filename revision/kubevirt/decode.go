package kubevirt

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/reference"
)

// How data is laid out.
const (
	// FormSpecRevision: the encoded spec of a v1alpha1 object beside an apiVersion,
	// which may be empty. Written by KubeVirt v0.56 and v0.57.
	FormSpecRevision = "SpecRevision"
	// FormObject: the whole object. Written by KubeVirt since v0.58.
	FormObject = "Object"
)

// Family is the family "KubeVirtInstancetype".
type Family struct{}

var _ decision.Family = Family{}

// Name is what specs and flags call the family.
const Name = "KubeVirtInstancetype"

// Describe is what is known of it without a cluster.
func (Family) Describe() decision.Description {
	d := decision.Description{
		Name: Name, Versions: []string{v1alpha1, v1alpha2, v1beta1}, Targets: []string{v1beta1},
		Owners: owners, Referrers: referrers(), Readers: users(),
	}
	for _, singular := range slices.Sorted(maps.Keys(kinds)) {
		d.Resources = append(d.Resources, kinds[singular].resource())
	}
	return d
}

// Decode reads a revision. The data decides what it is, whatever labels say; where it
// does not say its type, as a SpecRevision does not, the expected type does.
//
// Losses are the fields that the object's version does not know. At v1beta1 there are
// none: KubeVirt has added fields to it in one release after the other, and data at
// v1beta1 is never converted. An object at a version that this release does not know
// is returned as it is.
func (Family) Decode(r *appsv1.ControllerRevision, expected reference.ExpectedType) (decision.StoredObject, error) {
	fail := func(s decision.StoredObject, err error) (decision.StoredObject, error) {
		if errors.Is(err, decision.ErrNotInFamily) {
			return decision.StoredObject{}, err
		}
		return s, fmt.Errorf("read the data of ControllerRevision %s/%s: %w", r.Namespace, r.Name, err)
	}
	owner := belongs(r)
	asked := expected.Kind != "" || isLabelled(r)
	if owner == others && !asked {
		return fail(decision.StoredObject{}, decision.ErrNotInFamily)
	}
	data := parsedData.of(r.Data.Raw, func() parsed { return parseData(r.Data.Raw) })
	object, err := data.object, data.err
	if err != nil {
		if owner != ours && !asked {
			err = decision.ErrNotInFamily // what it was to hold is unknown
		}
		return fail(decision.StoredObject{}, err)
	}
	form, version, err := formOf(object, owner == ours || asked || owner == unowned && nameTail.MatchString(r.Name))
	if err != nil {
		return fail(decision.StoredObject{}, err)
	}
	s := decision.StoredObject{Form: form, Version: version, Current: r.Labels[labelVersion] == v1beta1}
	if by := metav1.GetControllerOf(r); owner == others && by != nil && !strings.HasPrefix(r.Name, startRevisionPrefix) {
		return fail(s, &decision.UnexpectedOwnerError{Kind: by.Kind, Name: by.Name})
	}
	if form == FormSpecRevision {
		object, err = unwrapSpec(r, object, expected)
		if err != nil {
			return fail(s, err)
		}
	} else {
		s.Data = r.Data.Raw
	}
	decoded, err := storedObject(s, object, expected)
	if err != nil {
		return fail(s, err)
	}
	return decoded, nil
}

// belonging is what the owner says of a revision that no object refers to, and that has
// no labels of ours.
type belonging int

const (
	// unowned may be ours: its owner may be gone.
	unowned belonging = iota
	// ours belong to a VirtualMachine or a snapshot of one.
	ours
	// others are not even read: a StatefulSet's, and what a machine was started with.
	others
)

func belongs(r *appsv1.ControllerRevision) belonging {
	owner := metav1.GetControllerOf(r)
	switch {
	case strings.HasPrefix(r.Name, startRevisionPrefix):
		return others
	case owner == nil:
		return unowned
	}
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
	if slices.ContainsFunc(owners, func(o decision.OwnerType) bool { return o.GroupKind() == kind }) {
		return ours
	}
	return others
}

func parseData(data []byte) parsed {
	value, err := parse(data)
	if err != nil {
		return parsed{err: err}
	}
	object, ok := value.(map[string]any)
	if !ok {
		return parsed{err: errors.New("it holds no object")}
	}
	return parsed{object: object}
}

// formOf tells ours from others by the data alone. A SpecRevision has a spec that is a
// string. Start revisions, pools' revisions and patches of StatefulSets have no kind
// either, but no string there. One without an apiVersion is ours only if something else
// says so: its owner, a reference to it, or its name.
func formOf(object map[string]any, likely bool) (form, version string, err error) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	_, encoded := object["spec"].(string)
	group, version, _ := strings.Cut(apiVersion, "/")
	switch {
	case kind == "" && encoded && (group == Group || apiVersion == "" && likely):
		if apiVersion != "" && version != v1alpha1 {
			return "", "", fmt.Errorf("a spec by itself is of v1alpha1, this one says %q", apiVersion)
		}
		for key := range object {
			if key != "apiVersion" && key != "spec" {
				return "", "", fmt.Errorf("a spec by itself has nothing beside it but an apiVersion, this one has %.100q", key)
			}
		}
		return FormSpecRevision, v1alpha1, nil
	case group != Group:
		return "", "", decision.ErrNotInFamily
	case version == "":
		return "", "", fmt.Errorf("it has an apiVersion without a version, %.100q", apiVersion)
	case kind == "":
		return "", "", fmt.Errorf("it is of %.100s and has no kind", apiVersion)
	}
	return FormObject, version, nil
}

// storedObject adds the decoded object, if that is what it says it is.
func storedObject(s decision.StoredObject, object map[string]any, expected reference.ExpectedType) (decision.StoredObject, error) {
	name, _ := object["kind"].(string)
	k, known := kindOf(name)
	if !known || k.name != name {
		return decision.StoredObject{}, fmt.Errorf("kind %.100q of %s is neither an instance type nor a preference", name, Group)
	}
	if err := checkExpected(k, expected); err != nil {
		return decision.StoredObject{}, err
	}
	if shapes().Kinds[s.Version] != nil {
		found := checkedData.of(s.Data, func() finding { return checkObject(s.Version, k, object) })
		if found.err != nil {
			return decision.StoredObject{}, found.err
		}
		if s.Version != v1beta1 {
			s.Losses = found.unknown
		}
	}
	s.Resource, s.Object = k.resource(), object
	return s, nil
}

// checkExpected holds what data say against what a reference takes it for. KubeVirt does
// not mind whether the kind is the cluster-wide one, only the role.
func checkExpected(k kind, expected reference.ExpectedType) error {
	if expected.Kind == "" {
		return nil
	}
	want, known := kindOf(expected.Kind)
	if !known {
		return fmt.Errorf("a reference takes it for a %.100q, which is neither an instance type nor a preference", expected.Kind)
	}
	if want.preference != k.preference {
		return fmt.Errorf("a reference takes it for a %s, and it holds a %s: correct the reference", want.name, k.name)
	}
	return nil
}

// unwrapSpec makes an object of a spec by itself.
func unwrapSpec(r *appsv1.ControllerRevision, data map[string]any, expected reference.ExpectedType) (map[string]any, error) {
	text, _ := data["spec"].(string)
	encoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("its spec is not in base64: %w", err)
	}
	spec, err := parse(encoded)
	if err != nil {
		return nil, fmt.Errorf("in its spec: %w", err)
	}
	if spec == nil {
		spec = map[string]any{}
	}
	k, err := kindOfSpec(r, spec, expected)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"apiVersion": Group + "/" + v1alpha1,
		"kind":       k.name,
		"metadata":   identify(r, expected.Name).metadata(),
		"spec":       spec,
	}, nil
}

// kindOfSpec is what a spec is of which nothing says so but a reference. Both roles
// have specs that read as the other; one that reads as the other alone belies its
// reference.
func kindOfSpec(r *appsv1.ControllerRevision, spec any, expected reference.ExpectedType) (kind, error) {
	spelled := expected.Kind
	if spelled == "" {
		spelled = r.Labels[labelKind]
	}
	k, known := kindOf(spelled)
	if !known && spelled != "" {
		return kind{}, fmt.Errorf("it is taken for a %.100q, which is neither an instance type nor a preference", spelled)
	}
	if !known {
		return kind{}, errors.New("it holds a spec without a kind, and no object refers to it that would tell: delete it unless a backup restore needs it")
	}
	other := kinds["virtualmachinepreference"]
	if k.preference {
		other = kinds["virtualmachineinstancetype"]
	}
	if !checkSpec(v1alpha1, k, spec).clean() && checkSpec(v1alpha1, other, spec).clean() {
		return kind{}, fmt.Errorf("it is taken for a %s, and it holds the spec of %s: correct the reference to it", k.name, other.role())
	}
	return k, nil
}
