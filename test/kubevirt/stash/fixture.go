package stash

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/godwit-dev/godwit/revision/reference"
)

const group = "instancetype.kubevirt.io"

// Fixture is one object, stashed in one form.
type Fixture struct {
	// Name is a path of form, kind, and what else tells it from the others.
	Name string
	// Form: F0 is a spec by itself, F1 to F3 are whole objects at v1alpha1, v1alpha2
	// and v1beta1.
	Form string
	// Version of the API that the data is at.
	Version string
	// Kind of the object, canonical.
	Kind string
	// Object is the name of the object, UID and Generation are its own as well.
	Object, UID string
	Generation  int64
	// Labelled as KubeVirt labels since v1.0.1.
	Labelled bool
	// VM is the name of a virtual machine that refers to it: no two fixtures have one.
	VM string
	// Data of the revision.
	Data string
	// matcher is how a virtual machine spells the kind.
	matcher string
}

// All are the 28 fixtures.
func All() []Fixture {
	var all []Fixture
	for _, form := range []struct{ name, version string }{{"F0", "v1alpha1"}, {"F1", "v1alpha1"}, {"F2", "v1alpha2"}, {"F3", "v1beta1"}} {
		for _, o := range objects {
			if form.name == "F0" {
				all = append(all, o.bare())
				continue
			}
			for _, labelled := range []bool{false, true} {
				all = append(all, o.whole(form.name, form.version, labelled))
			}
		}
	}
	return all
}

// Find is the fixture of a name. It panics when there is none.
func Find(name string) Fixture {
	all := All()
	i := slices.IndexFunc(all, func(f Fixture) bool { return f.Name == name })
	if i < 0 {
		panic("no fixture is called " + name)
	}
	return all[i]
}

// Preference is whether the object is one, and not an instance type.
func (f Fixture) Preference() bool { return strings.HasSuffix(f.Kind, "Preference") }

// Claim is what a reference to the fixture takes it for.
func (f Fixture) Claim() reference.ExpectedType {
	return reference.ExpectedType{Kind: f.Kind, Name: f.Object}
}

// RevisionName is what the revision is called that belongs to an owner: as KubeVirt
// calls it since v1.3, when it is labelled and at v1beta1, and otherwise as before.
func (f Fixture) RevisionName(owner string) string {
	if f.Labelled && f.Form == "F3" {
		return fmt.Sprintf("%s-%s-%s-%s-%d", owner, f.Object, f.Version, f.UID, f.Generation)
	}
	return fmt.Sprintf("%s-%s-%s-%d", owner, f.Object, f.UID, f.Generation)
}

// Revision is the fixture as owner's own. An owner that is to be on a server must be
// there already, with its UID.
func (f Fixture) Revision(owner *unstructured.Unstructured) *appsv1.ControllerRevision {
	r := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            f.RevisionName(owner.GetName()),
			Namespace:       owner.GetNamespace(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())},
		},
		Data: runtime.RawExtension{Raw: []byte(f.Data)},
	}
	if f.Labelled {
		r.Labels = map[string]string{
			"instancetype.kubevirt.io/object-generation": strconv.FormatInt(f.Generation, 10),
			"instancetype.kubevirt.io/object-kind":       f.Kind,
			"instancetype.kubevirt.io/object-name":       f.Object,
			"instancetype.kubevirt.io/object-uid":        f.UID,
			"instancetype.kubevirt.io/object-version":    f.Version,
		}
	}
	return r
}
