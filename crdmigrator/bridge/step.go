package bridge

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// steps are the steps between the live CRD and the next one, each with a whole spec.
func (b *Bridge) steps(f Facts) []Step {
	crd := f.Live.DeepCopy()
	var all []Step
	add := func(k Kind) { all = append(all, Step{k, manifest(crd)}) }
	added, served := b.addTarget(crd, f.Next), b.serveOld(crd)
	if added || served {
		add(Serve)
	}
	if kube.StorageVersion(crd) != b.Target {
		for i := range crd.Spec.Versions {
			v := &crd.Spec.Versions[i]
			v.Storage = v.Name == b.Target
			v.Served = v.Served || v.Storage // objects are written at the storage version
		}
		add(Store)
	}
	if len(otherThan(storedVersions(f.Live), b.Target)) > 0 {
		all = append(all, Step{Migrate, nil})
	}
	if served := slices.ContainsFunc(b.RemovedVersions, func(v string) bool { return kube.Serves(crd, v) }); served {
		for i := range crd.Spec.Versions {
			v := &crd.Spec.Versions[i]
			v.Served = v.Served && !slices.Contains(b.RemovedVersions, v.Name)
		}
		add(Unserve)
	}
	crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return slices.Contains(b.RemovedVersions, v.Name)
	})
	add(Remove)
	return all
}

// addTarget adds the target to a CRD that does not have it.
func (b *Bridge) addTarget(crd, next *apiextensionsv1.CustomResourceDefinition) bool {
	if kube.HasVersion(crd, b.Target) {
		return false
	}
	v := *versionOf(next, b.Target).DeepCopy()
	v.Storage, v.Served = false, true
	crd.Spec.Versions = append(crd.Spec.Versions, v)
	return true
}

// serveOld serves the old versions of which the schemas do not show that the target keeps each value: the migration tries each
// object through them.
func (b *Bridge) serveOld(crd *apiextensionsv1.CustomResourceDefinition) bool {
	stored := crd.DeepCopy()
	for i := range stored.Spec.Versions {
		stored.Spec.Versions[i].Storage = stored.Spec.Versions[i].Name == b.Target
	}
	served := false
	for _, old := range values.Unproven(stored) {
		if v := versionOf(crd, old.Name); !v.Served {
			v.Served, served = true, true
		}
	}
	return served
}

// manifest is the CRD for a server-side apply of a step. It has no labels, annotations and spec.conversion, so that these stay
// as their owners write them.
func manifest(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	m := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: crd.Name},
		Spec:       *crd.Spec.DeepCopy(),
	}
	m.Spec.Conversion = nil
	return m
}

// after is the live CRD after the last step.
func (b *Bridge) after(f Facts) *apiextensionsv1.CustomResourceDefinition {
	crd := f.Live.DeepCopy()
	crd.Spec.Versions = b.Steps[len(b.Steps)-1].Manifest.Spec.Versions
	crd.Status.StoredVersions = []string{b.Target}
	return crd
}
