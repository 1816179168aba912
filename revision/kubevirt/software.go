package kubevirt

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/reference"
)

// Software tells the release of KubeVirt by the versions that the CRDs define, which its operator
// writes before it replaces the controllers:
//
//	| KubeVirt     | the CRDs define              | reads     | upgrades itself, at each reconciliation of a VirtualMachine           |
//	| v1.2         | v1alpha1, v1alpha2, v1beta1  | all       | nothing                                                               |
//	| v1.3, v1.4   | the same                     | all       | what is not Current, and repoints the spec                            |
//	| v1.5, v1.6   | the same; v1.6 serves v1beta1 alone | all | what is not Current; repoints the status, deletes what the spec names |
//	| v1.7, later  | v1beta1                      | v1beta1   | the same, of what it reads                                            |
//
// In the middle of an upgrade of KubeVirt some CRDs are new, and controllers of both releases may
// run: what one of them can't read counts as unreadable.
func (Family) Software(crds map[schema.GroupResource]decision.CRD) decision.Software {
	found, older := false, true
	for _, crd := range crds {
		found = found || crd.Found
		if crd.Found && !slices.Contains(crd.Versions, v1alpha1) && !slices.Contains(crd.Versions, v1alpha2) {
			older = false
		}
	}
	switch {
	case !found:
		return decision.Software{Release: "KubeVirt"}
	case older:
		return decision.Software{Release: "KubeVirt v1.6 or earlier", Upgrades: true}
	}
	return decision.Software{Release: "KubeVirt v1.7 or later", Reads: []string{v1beta1}, Upgrades: true}
}

// Equal compares kinds and specs. A conversion writes fields that KubeVirt's own v1beta1 objects may lack,
// with the values that mean the same.
func (Family) Equal(a, b decision.StoredObject) bool {
	return a.Version == b.Version && a.Object["kind"] == b.Object["kind"] && reflect.DeepEqual(filledSpec(a), filledSpec(b))
}

func filledSpec(s decision.StoredObject) any {
	name, _ := s.Object["kind"].(string)
	k, known := kindOf(name)
	if !known || k.preference || s.Version != v1beta1 {
		return s.Object["spec"]
	}
	object := runtime.DeepCopyJSON(map[string]any{"spec": s.Object["spec"]})
	convertInstancetype(object)
	return object["spec"]
}

// Holds compares UID and generation, which KubeVirt writes into the name of a revision: an object
// of one UID and generation has one spec. The owner's name must begin both names, and the
// revision's own data must say the same as its name.
func (f Family) Holds(r *appsv1.ControllerRevision, gone string) string {
	owner := ownerName(r)
	before, now := nameTail.FindStringSubmatch(gone), nameTail.FindStringSubmatch(r.Name)
	if owner == "" || before == nil || now == nil || !slices.Equal(before[2:], now[2:]) || !strings.HasPrefix(gone, owner+"-") {
		return ""
	}
	s, err := f.Decode(r, reference.ExpectedType{})
	if err != nil {
		return ""
	}
	of := identityIn(s.Object)
	if of.uid != now[2] || of.generation != now[3] || !slices.Contains(headsOf(owner, of.name), before[1]) {
		return ""
	}
	return fmt.Sprintf("both are copies of %s at generation %s (UID %s)", of.name, of.generation, of.uid)
}

// headsOf are how the names of an owner's copies of an object begin, in all releases of KubeVirt.
func headsOf(owner, object string) []string {
	heads := []string{owner + "-" + object}
	for _, v := range []string{v1alpha1, v1alpha2, v1beta1} {
		heads = append(heads, heads[0]+"-"+v)
	}
	return heads
}
