package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/externalname/internal/evidence"
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

// Annotations of crossplane-runtime, which this package does not import.
const (
	annotationName            = evidence.AnnotationName
	annotationPaused          = evidence.AnnotationPaused
	annotationCreatePending   = evidence.AnnotationPending
	annotationCreateSucceeded = evidence.AnnotationSucceeded
	annotationCreateFailed    = evidence.AnnotationFailed
	// annotationBound is on each managed resource whose provider follows package crossplane.
	annotationBound = evidence.AnnotationBound
	// labelComposite is on each resource that a Composition composes.
	labelComposite = "crossplane.io/composite"
)

// Reasons of crossplane-runtime's condition Synced.
const (
	reconcilePaused  = "ReconcilePaused"
	reconcileSuccess = "ReconcileSuccess"
	reconcileError   = "ReconcileError"
)

// doesNotExist is part of the messages of crossplane-runtime and of package crossplane for an external resource that does not
// exist, under policies that allow Observe alone.
const doesNotExist = "does not exist"

// policiesOff is part of crossplane-runtime's message for management policies of a provider that runs without them.
const policiesOff = "non-default"

// observeOnly are the management policies under which a provider reads, and never creates, updates or deletes.
var observeOnly = []string{"Observe"}

// managed reads a managed resource.
type managed struct{ *unstructured.Unstructured }

// externalName returns the external name, or nil if the annotation does not exist. An empty annotation is not nil.
func (m managed) externalName() *string {
	if name, ok := m.GetAnnotations()[annotationName]; ok {
		return &name
	}
	return nil
}

// paused reports whether the object is paused, by crossplane-runtime's rule.
func (m managed) paused() bool { return m.GetAnnotations()[annotationPaused] == "true" }

// isManaged reports whether the object is a managed resource, and not a claim or a composite.
func (m managed) isManaged() bool {
	_, found, err := unstructured.NestedMap(m.Object, "spec", "forProvider")
	return found && err == nil
}

// upjetDomains are the domains of Upjet's annotations: upjet.crossplane.io/provider-meta, which has the private Terraform state
// of providers that run the Terraform CLI; internal.upjet.crossplane.io/field-conversions; and marks of tests.
var upjetDomains = []string{"upjet.crossplane.io", "internal.upjet.crossplane.io", "upjet.upbound.io"}

// upjet reports whether Upjet decides how the name is written: it has generated the provider, and the provider does not follow
// package crossplane. A provider without asynchronous operations and without the Terraform CLI leaves a single mark in an
// object: Upjet's type writes spec.initProvider with each write of the whole object, also when it is empty.
func (m managed) upjet(generatedCRD bool) bool {
	if _, bound := m.GetAnnotations()[annotationBound]; bound {
		return false
	}
	if _, has, err := unstructured.NestedMap(m.Object, "spec", "initProvider"); generatedCRD || has && err == nil {
		return true
	}
	for key := range m.GetAnnotations() {
		domain, _, _ := strings.Cut(key, "/")
		if slices.Contains(upjetDomains, domain) {
			return true
		}
	}
	return m.condition("LastAsyncOperation") != (condition{}) || m.condition("AsyncOperation") != (condition{})
}

// condition is what the package reads of a condition.
type condition struct{ status, reason, message string }

func (m managed) condition(kind string) condition {
	list, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
	for _, one := range list {
		c, ok := one.(map[string]any)
		if !ok || c["type"] != kind {
			continue
		}
		status, _ := c["status"].(string)
		reason, _ := c["reason"].(string)
		message, _ := c["message"].(string)
		return condition{status, reason, message}
	}
	return condition{}
}

func (m managed) synced() condition { return m.condition("Synced") }

// creations returns a text that changes whenever the provider begins or ends a creation.
func (m managed) creations() string {
	a := m.GetAnnotations()
	return strings.Join([]string{a[annotationCreatePending], a[annotationCreateSucceeded], a[annotationCreateFailed]}, ",")
}

// policies returns spec.managementPolicies. It is nil for a kind without the field: CRDs that have it have a default.
func (m managed) policies() []string {
	policies, _, _ := unstructured.NestedStringSlice(m.Object, "spec", "managementPolicies")
	return policies
}

// hidesAbsence reports whether crossplane-runtime v2.4.0 reports success for an external resource that does not exist:
// under policies without Create that allow more than Observe.
func (m managed) hidesAbsence() bool {
	policies := m.policies()
	if len(policies) == 0 || slices.Contains(policies, "*") || slices.Contains(policies, "Create") {
		return false
	}
	return !slices.Equal(policies, observeOnly)
}

// account returns the provider's configuration: the same name in different accounts names different external resources.
func (m managed) account() string {
	kind, _, _ := unstructured.NestedString(m.Object, "spec", "providerConfigRef", "kind")
	name, _, _ := unstructured.NestedString(m.Object, "spec", "providerConfigRef", "name")
	if kind == "ProviderConfig" {
		return m.GetNamespace() + "/" + name
	}
	return kind + "/" + name
}

// DefaultVolatile are the fields of status.atProvider that change without a change of the identity. Letter case is
// ignored.
var DefaultVolatile = evidence.Volatile

// Identity selects the fields of status.atProvider that identify the external resource.
type Identity struct {
	// Fields are top-level fields of status.atProvider. None means all fields that are not volatile, and that the spec does not
	// have: a provider writes the values of the spec to whatever resource the name identifies, so that they prove nothing.
	Fields []string
	// Volatile fields are ignored, beside [DefaultVolatile].
	Volatile []string

	// spec are the fields of the spec, by the CRD.
	spec []string
}

// hashes returns the hash of each field of status.atProvider that identifies the external resource. It is empty for an
// object that was not observed.
func (i Identity) hashes(m managed) map[string]string {
	observed, _, _ := unstructured.NestedMap(m.Object, "status", "atProvider")
	identity, mirrored := map[string]string{}, i.mirrored(m)
	for field, value := range observed {
		if !i.includes(field) || slices.Contains(mirrored, field) {
			continue
		}
		text, err := json.Marshal(value) // sorts the keys of maps
		if err != nil {
			continue
		}
		sum := sha256.Sum256(text)
		identity[field] = hex.EncodeToString(sum[:hashBytes])
	}
	return identity
}

// mirrored returns the fields of status.atProvider that the spec has, unless the user has chosen the fields.
func (i Identity) mirrored(m managed) []string {
	if len(i.Fields) > 0 {
		return nil
	}
	observed, _, _ := unstructured.NestedMap(m.Object, "status", "atProvider")
	var fields []string
	for field := range observed {
		_, has, _ := unstructured.NestedFieldNoCopy(m.Object, "spec", "forProvider", field)
		if has || slices.Contains(i.spec, field) {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	return fields
}

// hashBytes is the length of a hash: the probability that two values match by accident is 2⁻⁶⁴.
const hashBytes = 8

func (i Identity) includes(field string) bool {
	if len(i.Fields) > 0 {
		return slices.Contains(i.Fields, field)
	}
	return !slices.Contains(DefaultVolatile, strings.ToLower(field)) && !slices.Contains(i.Volatile, field)
}

// differing returns the fields in which two identities differ.
func differing(before, after map[string]string) []string {
	var fields []string
	for field, hash := range before {
		if after[field] != hash {
			fields = append(fields, field)
		}
	}
	for field := range after {
		if _, known := before[field]; !known {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	return fields
}
