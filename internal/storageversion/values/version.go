package values

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/kube"
)

// OldVersion is a version at which objects may be stored, and of which the schemas do not show that the storage version keeps
// each value.
type OldVersion struct {
	Name   string
	Served bool
	// Unkept are the paths at which the storage version may drop values. It is nil if a webhook converts: then only the round
	// trip of an object shows what is lost.
	Unkept []string
}

// Unproven returns the old versions of which the schemas do not prove that the storage version keeps each value.
func Unproven(crd *apiextensionsv1.CustomResourceDefinition) []OldVersion {
	if kube.StorageVersion(crd) == "" {
		return nil
	}
	storage := kube.SchemaOf(crd, kube.StorageVersion(crd))
	var all []OldVersion
	for _, v := range crd.Spec.Versions {
		if v.Storage || !mayStore(crd, v.Name) {
			continue
		}
		old := OldVersion{Name: v.Name, Served: v.Served}
		if !kube.Converts(crd) {
			if old.Unkept = Unkept(kube.SchemaOf(crd, v.Name), storage); len(old.Unkept) == 0 {
				continue
			}
		}
		all = append(all, old)
	}
	return all
}

// KeepAlike reports whether two states of a CRD keep the same values of the objects: the versions that both have keep the same
// fields, and the same server converts between them.
func KeepAlike(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	if !kube.SameConverter(a, b) {
		return false
	}
	for _, v := range a.Spec.Versions {
		before, after := kube.SchemaOf(a, v.Name), kube.SchemaOf(b, v.Name)
		if kube.HasVersion(b, v.Name) && (len(Unkept(before, after)) > 0 || len(Unkept(after, before)) > 0) {
			return false
		}
	}
	return true
}

// mayStore reports whether objects may be stored at a version: at any, if status.storedVersions is wrong.
func mayStore(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	stored := crd.Status.StoredVersions
	return slices.Contains(stored, version) || kube.FailedMigration(crd) >= 0 || !slices.Contains(stored, kube.StorageVersion(crd))
}

// MayLose reports whether objects of the version can lose values at a path.
func (o OldVersion) MayLose(crd *apiextensionsv1.CustomResourceDefinition, path string) bool {
	if o.Unkept == nil {
		return Has(kube.SchemaOf(crd, o.Name), path)
	}
	return Touches(path, o.Unkept)
}
