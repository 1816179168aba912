package ownerreference

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Finder keeps the dependents with a reference to one of some owners whose version is not in Kept of these owners.
type Finder struct {
	owners map[schema.GroupKind]Owners
	seen   map[types.UID]struct{}
	// Found has the dependents by the name of their owner's CRD.
	Found map[string][]*Dependent
}

// NewFinder finds references to the objects of some CRDs.
func NewFinder(owners []Owners) *Finder {
	f := &Finder{owners: map[schema.GroupKind]Owners{}, seen: map[types.UID]struct{}{}, Found: map[string][]*Dependent{}}
	for _, o := range owners {
		f.owners[o.Kind] = o
	}
	return f
}

// Visit is a [Visit]: it keeps an object with such a reference.
func (f *Finder) Visit(r schema.GroupVersionResource, o *metav1.PartialObjectMetadata) {
	named := map[string]struct{}{}
	for i := range o.OwnerReferences {
		gv, err := schema.ParseGroupVersion(o.OwnerReferences[i].APIVersion)
		if err != nil {
			continue // not a version of a CRD
		}
		owners, ok := f.owners[schema.GroupKind{Group: gv.Group, Kind: o.OwnerReferences[i].Kind}]
		if ok && len(owners.Outdated(o.OwnerReferences[i:i+1])) > 0 {
			named[owners.CRD] = struct{}{}
		}
	}
	if _, again := f.seen[o.UID]; again || len(named) == 0 {
		return
	}
	f.seen[o.UID] = struct{}{}
	for crd := range named {
		f.Found[crd] = append(f.Found[crd], &Dependent{Resource: r, ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, OwnerReferences: o.OwnerReferences,
		}})
	}
}
