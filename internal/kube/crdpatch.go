package kube

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
)

// CRDObject returns the object of a CustomResourceDefinition, for a fix.
func CRDObject(name string) godwit.Object { return godwit.Object{Resource: "crd", Name: name} }

// AddVersions returns the patch that adds versions to spec.versions, so that the API server can read objects that are
// stored at them. The versions are not served, and keep every field. A conversion webhook must convert them too.
func AddVersions(crd *apiextensionsv1.CustomResourceDefinition, versions ...string) godwit.Patch {
	steps := make([]string, len(versions))
	for i, v := range versions {
		steps[i] = fmt.Sprintf(`{"op": "add", "path": "/spec/versions/-", "value": {"name": %q, "served": false, "storage": false, `+
			`"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}`, v)
	}
	return patchVersions(crd, steps)
}

// SetServed returns the patch that starts or stops serving versions. It tests the name at each index, in case the list
// of versions changes in between.
func SetServed(crd *apiextensionsv1.CustomResourceDefinition, serve bool, versions ...string) godwit.Patch {
	var steps []string
	for i, v := range crd.Spec.Versions {
		if slices.Contains(versions, v.Name) {
			steps = append(steps,
				fmt.Sprintf(`{"op": "test", "path": "/spec/versions/%d/name", "value": %q}`, i, v.Name),
				fmt.Sprintf(`{"op": "replace", "path": "/spec/versions/%d/served", "value": %t}`, i, serve))
		}
	}
	return patchVersions(crd, steps)
}

// RemoveConversion returns the patch that removes a CRD's conversion webhook.
func RemoveConversion(crd *apiextensionsv1.CustomResourceDefinition) godwit.Patch {
	return godwit.Patch{
		Object: CRDObject(crd.Name), Type: godwit.PatchMerge, Body: `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`, Owner: OwnerOf(crd, "conversion"),
	}
}

// SetStoredVersions returns the patch that replaces status.storedVersions.
func SetStoredVersions(crd string, versions ...string) godwit.Patch {
	quoted := make([]string, len(versions))
	for i, v := range versions {
		quoted[i] = fmt.Sprintf("%q", v)
	}
	return jsonPatch(crd, "status", []string{
		fmt.Sprintf(`{"op": "replace", "path": "/status/storedVersions", "value": [%s]}`, strings.Join(quoted, ", ")),
	})
}

// RemoveAnnotation removes an annotation of an object.
func RemoveAnnotation(o godwit.Object, annotation string) godwit.Patch {
	return godwit.Patch{Object: o, Type: godwit.PatchMerge, Body: fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, annotation)}
}

func patchVersions(crd *apiextensionsv1.CustomResourceDefinition, steps []string) godwit.Patch {
	patch := jsonPatch(crd.Name, "", steps)
	patch.Owner = OwnerOf(crd, "versions")
	return patch
}

func jsonPatch(crd, subresource string, steps []string) godwit.Patch {
	return godwit.Patch{Object: CRDObject(crd), Subresource: subresource, Type: godwit.PatchJSON, Body: "[" + strings.Join(steps, ", ") + "]"}
}
