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
	add := func(k Kind) { all = append(all, Step{Kind: k, Manifest: manifest(crd)}) }
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
		all = append(all, Step{Kind: Migrate})
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
	if keepsWebhook(crd, f.Next) {
		patch := kube.RemoveConversion(crd)
		all = append(all, Step{Kind: Unconvert, Patch: &patch})
	}
	return all
}

// keepsWebhook reports whether an apply of the next release would leave a part of the webhook, which the API server refuses. With several
// versions the webhook of the live release has to convert until the next release is installed.
func keepsWebhook(crd, next *apiextensionsv1.CustomResourceDefinition) bool {
	return kube.Converts(crd) && !kube.Converts(next) && len(crd.Spec.Versions) == 1 && len(kube.ConversionSharers(crd)) > 0
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
	for _, s := range b.Steps {
		switch {
		case s.Manifest != nil:
			crd.Spec.Versions = s.Manifest.Spec.Versions
		case s.Patch != nil:
			crd.Spec.Conversion = nil
		}
	}
	crd.Status.StoredVersions = []string{b.Target}
	return crd
}
