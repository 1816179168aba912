package rescue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
)

// ownersOfVersions are the managers that own spec.versions or spec.conversion, without the rescue's.
func ownersOfVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var all []string
	for _, e := range crd.ManagedFields {
		var owned struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if e.Manager == kube.FieldManager || e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		_, versions := owned.Spec["f:versions"]
		_, conversion := owned.Spec["f:conversion"]
		if versions || conversion {
			all = append(all, fmt.Sprintf("%s (%s)", e.Manager, e.Operation))
		}
	}
	return all
}

// restoredOwners are the managedFields of a CRD whose spec is restored. Each earlier owner has the fields that it had before
// the rescue, and those that it has added meanwhile. The manager of the rescue has the fields that it had before.
func (j Journal) restoredOwners(now []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	var all []metav1.ManagedFieldsEntry
	for _, e := range j.Owners {
		if i := slices.IndexFunc(now, func(n metav1.ManagedFieldsEntry) bool { return sameOwner(e, n) }); i >= 0 && e.Manager != kube.FieldManager {
			fields, err := union(e.FieldsV1, now[i].FieldsV1)
			if err != nil {
				return nil, fmt.Errorf("restore managedFields of %s: %w", e.Manager, err)
			}
			e.FieldsV1 = fields
		}
		all = append(all, e)
	}
	for _, n := range now {
		known := slices.ContainsFunc(j.Owners, func(e metav1.ManagedFieldsEntry) bool { return sameOwner(e, n) })
		if ours := n.Manager == kube.FieldManager && n.Subresource == ""; !known && !ours {
			all = append(all, n)
		}
	}
	return all, nil
}

func sameOwner(a, b metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.APIVersion == b.APIVersion && a.Subresource == b.Subresource
}

// union returns the fields of both.
func union(a, b *metav1.FieldsV1) (*metav1.FieldsV1, error) {
	if a == nil || b == nil {
		return a, nil
	}
	var one, two map[string]any
	if err := json.Unmarshal(a.GetRawBytes(), &one); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b.GetRawBytes(), &two); err != nil {
		return nil, err
	}
	merge(one, two)
	text, err := json.Marshal(one)
	if err != nil || bytes.Equal(text, a.GetRawBytes()) {
		return a, err
	}
	return metav1.NewFieldsV1(string(text)), nil
}

func merge(into, from map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		there, ok := into[key].(map[string]any)
		more, also := from[key].(map[string]any)
		if ok && also {
			merge(there, more)
			continue
		}
		into[key] = from[key]
	}
}

// patchOwners is the patch that removes the journal, and the checkpoint of a migration that was undone. If the spec is the one
// from before the rescue, it restores managedFields as well.
func (j Journal) patchOwners(crd *apiextensionsv1.CustomResourceDefinition) (patch []byte, restored bool, err error) {
	ops := []operation{{"replace", "/metadata/resourceVersion", crd.ResourceVersion}}
	for _, name := range []string{Annotation, evidence.CheckpointAnnotation} {
		if _, ok := crd.Annotations[name]; ok {
			ops = append(ops, operation{Op: "remove", Path: annotationPath(name)})
		}
	}
	if restored = hashOf(crd.Spec) == j.Spec; restored {
		owners, err := j.restoredOwners(crd.ManagedFields)
		if err != nil {
			return nil, false, err
		}
		ops = append(ops, operation{"replace", "/metadata/managedFields", owners})
	}
	patch, err = json.Marshal(ops)
	return patch, restored, err
}
