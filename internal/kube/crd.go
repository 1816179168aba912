package kube

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// CRDs is the resource of CustomResourceDefinitions.
var CRDs = schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}

// Generation identifies one state of the spec of one CRD.
type Generation struct {
	UID        types.UID
	Generation int64
}

// GenerationOf returns the generation of a CRD.
func GenerationOf(crd *apiextensionsv1.CustomResourceDefinition) Generation {
	return Generation{crd.UID, crd.Generation}
}

// ResourceOf returns the resource of a CRD's objects at the storage version. Objects are read and written at this
// version only, because a write at another version can lose fields.
func ResourceOf(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionResource {
	return schema.GroupVersionResource{
		Group: crd.Spec.Group, Version: StorageVersion(crd), Resource: crd.Spec.Names.Plural,
	}
}

// StorageVersion returns the version that a CRD's spec marks as the storage version; empty if it marks none.
func StorageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// ServedVersions returns the versions that a CRD serves, in the order of its spec.
func ServedVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var names []string
	for _, v := range crd.Spec.Versions {
		if v.Served {
			names = append(names, v.Name)
		}
	}
	return names
}

// Serves reports whether a CRD serves a version.
func Serves(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.Contains(ServedVersions(crd), version)
}

// HasUnserved reports whether a CRD has a version that it does not serve, in spec.versions or in status.storedVersions.
func HasUnserved(crd *apiextensionsv1.CustomResourceDefinition) bool {
	served := ServedVersions(crd)
	return len(served) < len(crd.Spec.Versions) ||
		slices.ContainsFunc(crd.Status.StoredVersions, func(v string) bool { return !slices.Contains(served, v) })
}

// HasVersion reports whether a CRD's spec has a version, served or not.
func HasVersion(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
}

// SchemaOf returns the schema of a version; nil if the version has none, or if the CRD does not have the version.
func SchemaOf(crd *apiextensionsv1.CustomResourceDefinition, version string) *apiextensionsv1.JSONSchemaProps {
	if crd.Spec.PreserveUnknownFields {
		return &apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true)}
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == version && v.Schema != nil {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// HasStatusAt reports whether a version of a CRD has the status subresource.
func HasStatusAt(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version && v.Subresources != nil && v.Subresources.Status != nil
	})
}

// HasStatus reports whether the storage version of a CRD has the status subresource.
func HasStatus(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return HasStatusAt(crd, StorageVersion(crd))
}

// Established reports whether the API server has begun to serve a CRD.
func Established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// ClusterScoped reports whether a CRD's objects have no namespace.
func ClusterScoped(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Scope == apiextensionsv1.ClusterScoped
}

// Converts reports whether a webhook converts a CRD's objects between versions.
func Converts(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// ConversionWebhook returns the client configuration of a CRD's conversion webhook, or nil if it has none.
func ConversionWebhook(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookClientConfig {
	if !Converts(crd) || crd.Spec.Conversion.Webhook == nil {
		return nil
	}
	return crd.Spec.Conversion.Webhook.ClientConfig
}

// SameConverter reports whether the same server converts the objects of two states of a CRD. A new certificate does not change the
// server.
func SameConverter(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	return equality.Semantic.DeepEqual(converter(a), converter(b))
}

// converter is what converts the objects; nil for the API server itself.
func converter(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookClientConfig {
	where := ConversionWebhook(crd).DeepCopy()
	if where != nil {
		where.CABundle = nil
	}
	return where
}

// Trimmed reports whether status.storedVersions has only the storage version: according to the API server, no object is
// stored at another version.
func Trimmed(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.Equal(crd.Status.StoredVersions, []string{StorageVersion(crd)}) && FailedMigration(crd) < 0
}

// MigrationFailed is the reason of the condition StorageMigrating after a failed StorageVersionMigration.
const MigrationFailed = "MigrationFailed"

// MigrationSucceeded is the reason of the condition StorageMigrating after a successful StorageVersionMigration.
const MigrationSucceeded = "MigrationSucceeded"

// FailedMigration returns the index of the condition of a failed StorageVersionMigration, or -1. With it,
// status.storedVersions is not reliable: Kubernetes' own migrator trims storedVersions even after a failure
// (finishCRDMigration in k8s.io/kubernetes 1.36 and 1.37), with objects left at old versions.
func FailedMigration(crd *apiextensionsv1.CustomResourceDefinition) int {
	return slices.IndexFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.StorageMigrating && c.Reason == MigrationFailed
	})
}
