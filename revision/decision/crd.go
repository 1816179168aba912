package decision

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/kube"
)

// CRD is what the API server says about the CRD of a stored object.
type CRD struct {
	Found          bool
	StorageVersion string
	// Versions are all that it defines, those that are not served among them.
	Versions       []string
	ServedVersions []string
	// StoredVersions are status.storedVersions.
	StoredVersions []string
}

// CRDOf says what upgrades need to know of a CRD; nil is one that is not installed.
func CRDOf(crd *apiextensionsv1.CustomResourceDefinition) CRD {
	if crd == nil {
		return CRD{}
	}
	known := CRD{Found: true, StorageVersion: kube.StorageVersion(crd), ServedVersions: kube.ServedVersions(crd), StoredVersions: crd.Status.StoredVersions}
	for _, v := range crd.Spec.Versions {
		known.Versions = append(known.Versions, v.Name)
	}
	return known
}

// Software is what the installed release of the software that a family belongs to does with
// revisions.
type Software struct {
	// Release as messages name it, such as "KubeVirt v1.7 or later".
	Release string
	// Reads are the versions that it reads; nil means all versions of the family.
	Reads []string
	// Upgrades means that it upgrades itself, when it starts, a revision that it reads and that is
	// not [StoredObject.Current], and deletes the old one although a spec names it.
	Upgrades bool
}

// ReadsAll reports whether it reads objects at all versions of the family.
func (s Software) ReadsAll() bool { return s.Reads == nil }

// CanRead reports whether it reads objects at a version.
func (s Software) CanRead(version string) bool {
	return s.ReadsAll() || slices.Contains(s.Reads, version)
}
