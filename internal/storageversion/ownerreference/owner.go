package ownerreference

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// Owners are the objects of one CRD, as owners of other objects.
type Owners struct {
	// CRD is the name of the CustomResourceDefinition.
	CRD           string
	Kind          schema.GroupKind
	ClusterScoped bool
	// Kept are the versions that a reference may name.
	Kept []string
	// Resource is what the API server serves: the storage version, or another version where it does not serve that one.
	// Its version is empty where the API server serves none.
	Resource schema.GroupVersionResource
	// Target is the version that a repaired reference names: the storage version. It is empty where that version is not
	// in Kept.
	Target string
	// unserved says why Resource has no version.
	unserved godwit.Finding
}

// Scope says which versions a reference may name.
type Scope uint8

const (
	// ServedVersions are all versions that the CRD serves.
	ServedVersions Scope = iota
	// StorageVersion is the storage version alone.
	StorageVersion
)

// OwnersOf returns the objects of a CRD as owners.
func OwnersOf(crd *apiextensionsv1.CustomResourceDefinition, scope Scope) Owners {
	served := kube.ServedVersions(crd)
	o := Owners{
		CRD: crd.Name, Kind: schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind},
		ClusterScoped: kube.ClusterScoped(crd), Kept: served, Resource: kube.ResourceOf(crd),
	}
	storage := o.Resource.Version
	switch {
	case slices.Contains(served, storage):
		o.Target = storage
	case len(served) > 0:
		o.Resource.Version = served[0]
	default:
		o.Resource.Version, o.unserved = "", decision.Unlisted(crd, nil).Finding
	}
	if scope == StorageVersion && o.Target != "" {
		o.Kept = []string{storage}
	}
	return o
}

// InRelease returns the same owners after a release that serves other versions.
func (o Owners) InRelease(next *apiextensionsv1.CustomResourceDefinition) Owners {
	o.Kept = kube.ServedVersions(next)
	if !slices.Contains(o.Kept, o.Target) {
		o.Target = ""
	}
	return o
}

// Outdated returns the indexes of the references to these owners whose version is not in Kept.
func (o Owners) Outdated(references []metav1.OwnerReference) []int {
	var indexes []int
	for i := range references {
		gv, err := schema.ParseGroupVersion(references[i].APIVersion)
		if err == nil && gv.Group == o.Kind.Group && references[i].Kind == o.Kind.Kind && !slices.Contains(o.Kept, gv.Version) {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// Identity is what the garbage collector compares of an owner, beside its version.
type Identity struct {
	UID             types.UID
	Namespace, Name string
}

// Existing are the owners of one CRD that exist. Nil means that they could not be listed.
type Existing map[Identity]struct{}
