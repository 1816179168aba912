package fleet

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/externalname/internal/evidence"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/kube"
)

// ManagedCRD reports whether the objects of a CRD are managed resources: they have spec.forProvider, or the CRD has the
// category managed and its schema does not describe the spec.
func ManagedCRD(crd *apiextensionsv1.CustomResourceDefinition) bool {
	if slices.Contains(crd.Spec.Names.Categories, "managed") {
		return true
	}
	_, has := storageSchema(crd).Properties["spec"].Properties["forProvider"]
	return has
}

// Kind is the kind of the managed resources.
type Kind struct {
	Resource schema.GroupVersionResource
	Kind     string
	// Upjet means that Upjet has generated the CRD: see [UpjetCRD].
	Upjet bool
	// SpecFields are the fields of spec.forProvider and spec.initProvider.
	SpecFields []string
}

// KindOf returns the kind of a CRD.
func KindOf(crd *apiextensionsv1.CustomResourceDefinition) Kind {
	k := Kind{Resource: kube.ResourceOf(crd), Kind: crd.Spec.Names.Kind, Upjet: UpjetCRD(crd)}
	root := storageSchema(crd)
	for _, part := range []string{"forProvider", "initProvider"} {
		for field := range root.Properties["spec"].Properties[part].Properties {
			k.SpecFields = append(k.SpecFields, field)
		}
	}
	slices.Sort(k.SpecFields)
	k.SpecFields = slices.Compact(k.SpecFields)
	return k
}

// storageSchema returns the schema of a CRD's storage version; without one, it is empty.
func storageSchema(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	if s := kube.SchemaOf(crd, kube.StorageVersion(crd)); s != nil {
		return s
	}
	return &apiextensionsv1.JSONSchemaProps{}
}

// UpjetCRD reports whether Upjet has generated a CRD: since August 2023 its template writes spec.initProvider, and a text about
// Terraform's ignore_changes. A CRD whose descriptions were removed has the field alone.
func UpjetCRD(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, v := range crd.Spec.Versions {
		if !v.Storage || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		spec := v.Schema.OpenAPIV3Schema.Properties["spec"]
		field, has := spec.Properties["initProvider"]
		return has && (field.Description == "" || strings.Contains(field.Description, "ignore_changes"))
	}
	return false
}

// DefaultVolatile are the fields of status.atProvider that change without a change of the identity. Letter case is
// ignored.
var DefaultVolatile = evidence.Volatile

// Identity selects the fields of status.atProvider that identify the external resource.
type Identity struct {
	// Fields are paths of fields of status.atProvider, such as id or manifest.metadata.uid. None means all top-level fields that are
	// not volatile, and that the spec does not have: a provider writes the values of the spec to whatever resource the name
	// identifies, so that they prove nothing.
	Fields []string
	// Volatile fields are ignored, beside [DefaultVolatile].
	Volatile []string
}

// of returns the identity for a kind.
func (i Identity) of(k Kind) managed.Identity {
	return managed.Identity{Fields: i.Fields, Volatile: i.Volatile, Spec: k.SpecFields}
}
