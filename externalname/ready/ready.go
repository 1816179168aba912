// Package ready decides which imported resources can be managed. An import begins with an object that only observes its
// external resource. When its spec matches the resource, a patch of the policies gives the provider full management
// without changing the external system.
//
// [Decide] is pure and needs no provider: it reads the conditions that externalname/crossplane sets. An object without
// these conditions is not ready.
package ready

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
)

// Patch gives the provider full management, as a JSON merge patch.
const Patch = `{"spec":{"managementPolicies":["*"]}}`

// Names of package externalname/crossplane and of crossplane-runtime, which this package can't import. A test there compares them.
const (
	// AnnotationBoundName is the name under which the external resource was last seen.
	AnnotationBoundName = "godwit.dev/bound-external-name"
	// TypeDrift is the condition that reports differences.
	TypeDrift = "Drift"
	// TypeUniqueName is the condition that reports several objects with one external name.
	TypeUniqueName = "UniqueExternalName"
	// AnnotationExternalName is the external name.
	AnnotationExternalName = "crossplane.io/external-name"
	// AnnotationPaused keeps a provider from reconciling an object.
	AnnotationPaused = "crossplane.io/paused"
)

// Reasons has the reasons of a [Decision].
var Reasons godwit.Catalog

// Reasons of a [Decision].
var (
	NoDifference = Reasons.Declare(godwit.Reason{
		Name:    "NoDifference",
		Meaning: "The spec is as the external resource is, so that full management changes nothing.",
		Fix:     godwit.Do("set spec.managementPolicies to *: the message has the command"),
	})
	Differs = Reasons.Declare(godwit.Reason{
		Name: "Differs", UserAction: true,
		Meaning: "The external resource differs from spec.forProvider, so that the first update would change it.",
		Fix:     godwit.Do("correct spec.forProvider: the condition Drift lists the fields"),
	})
	NotCompared = Reasons.Declare(godwit.Reason{
		Name: "NotCompared", UserAction: true,
		Meaning: "No provider has compared the spec as it is now with the external resource.",
		Fix:     godwit.Do("wait for the next reconcile. If it lasts, see whether the provider uses package externalname, which sets the condition Drift"),
	})
	NotSynced = Reasons.Declare(godwit.Reason{
		Name: "NotSynced", UserAction: true,
		Meaning: "The last observation failed.",
		Fix:     godwit.Do("see the condition Synced for the cause"),
	})
	NotReady = Reasons.Declare(godwit.Reason{
		Name: "NotReady", UserAction: true,
		Meaning: "The external resource can't be used.",
		Fix:     godwit.Do("see the condition Ready for the cause"),
	})
	NoName = Reasons.Declare(godwit.Reason{
		Name: "NoName", UserAction: true,
		Meaning: "The managed resource has no external name under which the external resource was seen.",
		Fix:     godwit.Do("write the external name, and wait until the provider has observed the external resource"),
	})
	SharedName = Reasons.Declare(godwit.Reason{
		Name: "SharedName", UserAction: true,
		Meaning: "Another managed resource has the same external name.",
		Fix:     godwit.Do("leave this one as it only observes, or correct its external name"),
	})
	Paused = Reasons.Declare(godwit.Reason{
		Name: "Paused", UserAction: true,
		Meaning: "The managed resource is paused, so that no provider reconciles it.",
		Fix:     godwit.Do("remove the annotation crossplane.io/paused"),
	})
	Deleting = Reasons.Declare(godwit.Reason{
		Name:    "Deleting",
		Meaning: "The managed resource is being deleted.",
		Fix:     godwit.Do("nothing is left to do"),
	})
)

// Decision is the decision about one object that only observes.
type Decision struct {
	Kind      schema.GroupVersionKind `json:"-"`
	Namespace string                  `json:"namespace,omitempty"`
	Name      string                  `json:"name"`
	// Ready means that managing the resource changes nothing.
	Ready   bool           `json:"ready"`
	Reason  *godwit.Reason `json:"reason"`
	Message string         `json:"message"`
	// Command patches the policies; empty unless Ready.
	Command string `json:"command,omitempty"`
}

// ObservesOnly reports whether an object only observes its external resource.
func ObservesOnly(o *unstructured.Unstructured) bool {
	policies, _, err := unstructured.NestedStringSlice(o.Object, "spec", "managementPolicies")
	return err == nil && slices.Equal(policies, []string{"Observe"})
}

// Decide decides about an object that only observes.
func Decide(o *unstructured.Unstructured) Decision {
	d := Decision{Kind: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
	d.Reason, d.Message = decide(o)
	if d.Ready = d.Reason == NoDifference; d.Ready {
		d.Command = command(o)
	}
	return d
}

func decide(o *unstructured.Unstructured) (*godwit.Reason, string) {
	annotations := o.GetAnnotations()
	synced, drift := conditionOf(o, "Synced"), conditionOf(o, TypeDrift)
	switch {
	case !o.GetDeletionTimestamp().IsZero():
		return Deleting, "the object is being deleted"
	case annotations[AnnotationPaused] == "true":
		return Paused, "remove the annotation " + AnnotationPaused + ": no provider reconciles a paused object"
	case synced.Status == metav1.ConditionFalse:
		return NotSynced, synced.Message
	case annotations[AnnotationExternalName] == "" || annotations[AnnotationBoundName] == "":
		return NoName, "the provider has not found an external resource under the external name"
	case !strings.EqualFold(strings.TrimSpace(annotations[AnnotationExternalName]), annotations[AnnotationBoundName]):
		return NotCompared, fmt.Sprintf("the external resource was last seen under the external name %q; write it so, or wait for the next observation", annotations[AnnotationBoundName])
	case synced.Status != metav1.ConditionTrue || !synced.about(o) || !drift.about(o) || drift.Status == metav1.ConditionUnknown || drift.Status == "":
		return NotCompared, "the provider has not compared the spec as it is now with the external resource; wait for its next observation"
	case drift.Status == metav1.ConditionTrue:
		return Differs, drift.Message
	case conditionOf(o, TypeUniqueName).Status == metav1.ConditionFalse:
		return SharedName, "another object has the external name: " + conditionOf(o, TypeUniqueName).Message
	case conditionOf(o, "Ready").Status != metav1.ConditionTrue:
		return NotReady, "the external resource can't be used: " + conditionOf(o, "Ready").Message
	}
	return NoDifference, "managing the external resource changes nothing"
}

// condition is one of status.conditions.
type condition struct {
	Status             metav1.ConditionStatus
	Message            string
	ObservedGeneration int64
}

// about reports whether a condition is about the current spec. It returns false for a condition without a generation.
func (c condition) about(o *unstructured.Unstructured) bool {
	return c.ObservedGeneration == o.GetGeneration()
}

func conditionOf(o *unstructured.Unstructured, kind string) condition {
	list, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return condition{}
	}
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok || fields["type"] != kind {
			continue
		}
		status, _ := fields["status"].(string)
		message, _ := fields["message"].(string)
		generation, _ := fields["observedGeneration"].(int64)
		return condition{Status: metav1.ConditionStatus(status), Message: message, ObservedGeneration: generation}
	}
	return condition{}
}

func command(o *unstructured.Unstructured) string {
	gvk := o.GroupVersionKind()
	words := []string{"kubectl patch", strings.ToLower(gvk.Kind) + "." + gvk.Group, o.GetName()}
	if namespace := o.GetNamespace(); namespace != "" {
		words = append(words, "-n", namespace)
	}
	return strings.Join(append(words, "--type=merge", "-p", "'"+Patch+"'"), " ")
}

// pageObjects bounds memory per list call; 500 is kubectl's --chunk-size default.
const pageObjects = 500

// List passes the decision about each object of a kind that only observes to decided, in the API server's order. An
// empty namespace means all. It returns an error if a request fails.
func List(ctx context.Context, c client.Reader, kind schema.GroupVersionKind, namespace string, decided func(Decision)) error {
	next := ""
	for {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, page, client.InNamespace(namespace), client.Limit(pageObjects), client.Continue(next)); err != nil {
			return fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		for i := range page.Items {
			if ObservesOnly(&page.Items[i]) {
				decided(Decide(&page.Items[i]))
			}
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}
