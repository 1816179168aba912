package revision

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/kube"
)

// aim finds the target version.
func (j decision) aim(d CRD, s StoredObject, f facts) decision {
	if !d.Found {
		return j.with(Blocked, ReasonCRDNotFound, fmt.Sprintf("there is no customresourcedefinition %s to read a target version from", s.Resource))
	}
	known := f.family.Describe()
	j.Target = d.target(f.policy.Target, s.Version, known)
	if slices.Contains(d.ServedVersions, j.Target) {
		return j
	}
	j.Fix.Targets = d.Reachable(known.Targets)
	helps := "no version that data can be converted to"
	if len(j.Fix.Targets) > 0 {
		helps = strings.Join(j.Fix.Targets, ", ") + ", to which data can be converted"
	}
	return j.with(Blocked, ReasonTargetNotServed, fmt.Sprintf("customresourcedefinition %s does not serve %s; it serves %s", s.Resource, j.Target, helps))
}

// crdOf says what upgrades need to know of a CRD; nil is one that is not installed.
func crdOf(crd *apiextensionsv1.CustomResourceDefinition) CRD {
	if crd == nil {
		return CRD{}
	}
	return CRD{Found: true, StorageVersion: kube.StorageVersion(crd), ServedVersions: kube.ServedVersions(crd), StoredVersions: crd.Status.StoredVersions}
}

// target of an object at a version: the one that is asked for, or else the storage version.
// Where that is a later one than the family knows, an object that is not at it goes to the
// newest version that is served and that it can be converted to.
func (d CRD) target(asked, version string, known Description) string {
	if asked != "" {
		return asked
	}
	later := version != d.StorageVersion && !slices.Contains(known.Versions, d.StorageVersion)
	if reachable := d.Reachable(known.Targets); later && len(reachable) > 0 {
		return reachable[len(reachable)-1]
	}
	return d.StorageVersion
}

// Reachable are the versions that are served and that objects can be converted to.
func (d CRD) Reachable(targets []string) []string {
	var all []string
	for _, v := range targets {
		if slices.Contains(d.ServedVersions, v) {
			all = append(all, v)
		}
	}
	return all
}
