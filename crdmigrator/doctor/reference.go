package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/ownerreference"
	"github.com/godwit-dev/godwit/walk"
)

// referenceKey is what the references of one finding have in common.
type referenceKey struct {
	resource schema.GroupVersionResource
	version  string
	decision ownerreference.Decision
}

// checkReferences makes one finding of the references from one resource to one version.
func checkReferences(f Facts, s Subject) []Finding {
	var order []referenceKey
	first, counts := map[referenceKey]Reference{}, map[referenceKey]int64{}
	for _, r := range f.References {
		if r.CRD != s.Owners.CRD {
			continue
		}
		gv, _ := schema.ParseGroupVersion(r.Dependent.OwnerReferences[r.Index].APIVersion)
		key := referenceKey{r.Dependent.Resource, gv.Version, r.Decision}
		if counts[key]++; counts[key] == 1 {
			order, first[key] = append(order, key), r
		}
	}
	var findings []Finding
	for _, key := range order {
		findings = append(findings, s.referenceFinding(key, first[key], counts[key]))
	}
	return findings
}

func (s Subject) referenceFinding(key referenceKey, example Reference, objects int64) Finding {
	d := example.Dependent
	f := Finding{Finding: godwit.Finding{Severity: godwit.Blocks, Reason: ReasonOwnerReferenceNotServed}, Objects: objects}
	named := fmt.Sprintf("ownerReferences of %s name %s", d, s.notServed(key.version))
	if objects > 1 {
		named = fmt.Sprintf("ownerReferences of %d %s, such as %s, name %s", objects, kube.ResourceArgument(key.resource.GroupResource()), walk.Key(d), s.notServed(key.version))
	}
	switch key.decision {
	case ownerreference.OwnerGone:
		f.Reason, f.Severity = ReasonOwnerGone, godwit.Warns
		f.Message = named + ", and no such owner exists in the namespace: the garbage collector would delete the object if the version were served"
		f.Fix = keepDependent(d.String(), removeAt(object(d), strconv.Itoa(example.Index), d.OwnerReferences[example.Index].UID)).Or(deleteDependent(object(d)))
	case ownerreference.OwnersUnread:
		f.Message = named + "; whether the owners exist is not known, because " + s.Owners.CRD + " can't be listed"
		f.Fix = seeWhyUnlisted(s.Owners.CRD)
	case ownerreference.NoTarget:
		f.Message = named + ": the garbage collector does not delete an object with its owner, and a deletion of the owner in the foreground waits for ever"
		f.Fix = s.fixWithoutTarget()
	default:
		f.Message = named + ": the garbage collector does not delete an object with its owner, and a deletion of the owner in the foreground waits for ever"
		f.Fix = s.repair()
	}
	return f
}

// repair is the run that repairs the references of a CRD.
func (s Subject) repair() godwit.Fix {
	switch {
	case s.Release:
		return repairBefore(s.Owners.CRD)
	case len(s.Unserved) == 0:
		return repair(s.Owners.CRD, all)
	}
	return repair(s.Owners.CRD, "")
}

// fixWithoutTarget is the fix for references that can't name the storage version.
func (s Subject) fixWithoutTarget() godwit.Fix {
	if s.StorageNotServed != nil {
		return serveAndRepair(s.StorageNotServed, s.Owners.CRD)
	}
	return repairAfter(s.Owners.CRD)
}

func object(d *ownerreference.Dependent) godwit.Object {
	return godwit.Object{Resource: kube.ResourceArgument(d.Resource.GroupResource()), Namespace: d.Namespace, Name: d.Name}
}

// checkApplied finds objects that kubectl applied from manifests at a version that is not served.
func checkApplied(f Facts, s Subject) []Finding {
	var findings []Finding
	for _, a := range f.Applied {
		if a.CRD != s.Owners.CRD {
			continue
		}
		apiVersion := anyServed
		if s.Owners.Target != "" {
			apiVersion = "apiVersion: " + s.Owners.Kind.Group + "/" + s.Owners.Target
		}
		findings = append(findings, Finding{
			Objects: a.Objects,
			Finding: godwit.Finding{
				Severity: godwit.Warns, Reason: ReasonLastAppliedNotServed,
				Message: fmt.Sprintf("kubectl has applied objects of %s from manifests at %s: %d, such as %s; the next apply of these manifests fails",
					s.Owners.CRD, s.notServed(a.Version), a.Objects, a.Example),
				Fix: applyAt(apiVersion),
			},
		})
	}
	return findings
}

// namedPaths bounds the paths of a message.
const namedPaths = 5

// checkManagedFields finds objects whose managedFields name a version to which the API server can't convert each field.
func checkManagedFields(f Facts, s Subject) []Finding {
	var findings []Finding
	for _, n := range s.Narrow {
		i := slices.IndexFunc(f.Owned, func(o VersionUse) bool { return o.CRD == s.Owners.CRD && o.Version == n.Version })
		if i < 0 {
			continue
		}
		lacks := strings.Join(n.Lacks[:min(len(n.Lacks), namedPaths)], ", ")
		if more := len(n.Lacks) - namedPaths; more > 0 {
			lacks += fmt.Sprintf(" and %d more", more)
		}
		findings = append(findings, Finding{
			Objects: f.Owned[i].Objects,
			Finding: godwit.Finding{
				Severity: godwit.Warns, Reason: ReasonManagedFieldsLackField,
				Message: fmt.Sprintf("managedFields of objects of %s name %s: %d, such as %s; its schema lacks %s, and each server-side apply of an object with such a field fails",
					s.Owners.CRD, n.Version, f.Owned[i].Objects, f.Owned[i].Example, lacks),
				Fix: addFields(n.Version).Or(unserve(s.Owners.CRD, n.Version, n.Unserve)),
			},
		})
	}
	return findings
}
