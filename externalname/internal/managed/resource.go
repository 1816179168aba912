package managed

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname/internal/evidence"
	"github.com/godwit-dev/godwit/internal/quote"
)

// Annotations of crossplane-runtime, which this package does not import.
const (
	AnnotationName   = evidence.AnnotationName
	AnnotationPaused = evidence.AnnotationPaused
	// AnnotationBound is on each managed resource whose provider follows package crossplane.
	AnnotationBound = evidence.AnnotationBound
	// LabelComposite is on each resource that a Composition composes.
	LabelComposite = "crossplane.io/composite"
)

// Reasons of crossplane-runtime's condition Synced.
const (
	ReconcilePaused  = "ReconcilePaused"
	ReconcileSuccess = "ReconcileSuccess"
	ReconcileError   = "ReconcileError"
)

// DoesNotExist is part of the messages of crossplane-runtime and of package crossplane for an external resource that does not
// exist, under policies that allow Observe alone.
const DoesNotExist = "does not exist"

// PoliciesOff is part of crossplane-runtime's message for management policies of a provider that runs without them.
const PoliciesOff = "non-default"

// ObserveOnly are the management policies under which a provider reads, and never creates, updates or deletes.
var ObserveOnly = []string{"Observe"}

// Resource reads a managed resource.
type Resource struct{ *unstructured.Unstructured }

// Of returns an object as a managed resource.
func Of(o *unstructured.Unstructured) Resource { return Resource{o} }

// ExternalName returns the external name, or nil if the annotation does not exist. An empty annotation is not nil.
func (m Resource) ExternalName() *string {
	if name, ok := m.GetAnnotations()[AnnotationName]; ok {
		return &name
	}
	return nil
}

// Paused reports whether the object is paused, by crossplane-runtime's rule.
func (m Resource) Paused() bool { return m.GetAnnotations()[AnnotationPaused] == "true" }

// IsManaged reports whether the object is a managed resource, and not a claim or a composite.
func (m Resource) IsManaged() bool {
	_, found, err := unstructured.NestedMap(m.Object, "spec", "forProvider")
	return found && err == nil
}

// upjetDomains are the domains of Upjet's annotations: upjet.crossplane.io/provider-meta, which has the private Terraform state
// of providers that run the Terraform CLI; internal.upjet.crossplane.io/field-conversions; and marks of tests.
var upjetDomains = []string{"upjet.crossplane.io", "internal.upjet.crossplane.io", "upjet.upbound.io"}

// Upjet reports whether Upjet decides how the name is written: it has generated the provider, and the provider does not follow
// package crossplane. A provider without asynchronous operations and without the Terraform CLI leaves a single mark in an
// object: Upjet's type writes spec.initProvider with each write of the whole object, also when it is empty.
func (m Resource) Upjet(generatedCRD bool) bool {
	if _, bound := m.GetAnnotations()[AnnotationBound]; bound {
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
	return m.Condition("LastAsyncOperation") != (Condition{}) || m.Condition("AsyncOperation") != (Condition{})
}

// Condition is what is read of a condition.
type Condition struct{ Status, Reason, Message string }

// String returns what the condition Synced says, on one line.
func (c Condition) String() string {
	if c == (Condition{}) {
		return "it has not written the condition Synced"
	}
	text := "Synced is " + c.Status + ", " + c.Reason
	if c.Message == "" {
		return text
	}
	return text + ": " + quote.Line(c.Message)
}

// Condition returns a condition of the status; it is empty without one.
func (m Resource) Condition(kind string) Condition {
	list, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
	for _, one := range list {
		c, ok := one.(map[string]any)
		if !ok || c["type"] != kind {
			continue
		}
		status, _ := c["status"].(string)
		reason, _ := c["reason"].(string)
		message, _ := c["message"].(string)
		return Condition{status, reason, message}
	}
	return Condition{}
}

// Synced returns the condition of crossplane-runtime about the last reconciliation.
func (m Resource) Synced() Condition { return m.Condition("Synced") }

// Created reports whether the provider has created an external resource, or has begun to.
func (m Resource) Created() bool { return m.Creations() != ",," }

// operationRuns reports whether an asynchronous operation of the provider has not ended: a pause does not stop it.
func (m Resource) operationRuns() bool {
	const ongoing = "Ongoing"
	_, pending := m.GetAnnotations()[evidence.AnnotationOperation]
	return pending || m.Condition("AsyncOperation").Reason == ongoing || m.Condition("LastAsyncOperation").Reason == ongoing
}

// Busy reports whether the provider may write although the managed resource is paused: an asynchronous operation or a creation has
// begun, and not ended.
func (m Resource) Busy() bool {
	return m.operationRuns() || evidence.CreationOf(m.Unstructured).Incomplete
}

// MayDelete reports whether the deletion of the managed resource deletes its external resource under some management policies, by
// crossplane-runtime's rule: a deletion policy counts only beside their default.
func (m Resource) MayDelete(policies []string) bool {
	if slices.Equal(policies, []string{"*"}) {
		policy, _, _ := unstructured.NestedString(m.Object, "spec", "deletionPolicy")
		return policy != "Orphan"
	}
	return slices.Contains(policies, "*") || slices.Contains(policies, "Delete")
}

// Creations returns a text that changes whenever the provider begins or ends a creation.
func (m Resource) Creations() string {
	a := m.GetAnnotations()
	return strings.Join([]string{a[evidence.AnnotationPending], a[evidence.AnnotationSucceeded], a[evidence.AnnotationFailed]}, ",")
}

// Policies returns spec.managementPolicies. It is nil for a kind without the field: CRDs that have it have a default.
func (m Resource) Policies() []string {
	policies, _, _ := unstructured.NestedStringSlice(m.Object, "spec", "managementPolicies")
	return policies
}

// HidesAbsence reports whether crossplane-runtime v2.4.0 reports success for an external resource that does not exist:
// under policies without Create that allow more than Observe.
func (m Resource) HidesAbsence() bool {
	policies := m.Policies()
	if len(policies) == 0 || slices.Contains(policies, "*") || slices.Contains(policies, "Create") {
		return false
	}
	return !slices.Equal(policies, ObserveOnly)
}

// Account returns the provider's configuration: the same name in different accounts names different external resources.
func (m Resource) Account() string {
	kind, _, _ := unstructured.NestedString(m.Object, "spec", "providerConfigRef", "kind")
	name, _, _ := unstructured.NestedString(m.Object, "spec", "providerConfigRef", "name")
	if kind == "ProviderConfig" {
		return m.GetNamespace() + "/" + name
	}
	return kind + "/" + name
}
