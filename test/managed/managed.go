// Package managed simulates a Crossplane provider without Crossplane's modules: it has a CRD of managed resources, and a
// controller that sets the same conditions for pauses and external names as crossplane-runtime.
package managed

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Annotations of crossplane-runtime.
const (
	ExternalName = "crossplane.io/external-name"
	Paused       = "crossplane.io/paused"
)

// Unanswered is the beginning of names for which the external system does not answer.
const Unanswered = "unanswered-"

// pollEvery is the time between two passes of the provider over all managed resources.
const pollEvery = 50 * time.Millisecond

// Kind is a kind of managed resources, members.GROUP.
type Kind struct {
	group  string
	client dynamic.NamespaceableResourceInterface
}

// New returns the kind in a group. It sends no request.
func New(cfg *rest.Config, group string) (Kind, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return Kind{}, err
	}
	return Kind{group, client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "members"})}, nil
}

// CRD returns the CRD of the kind.
func (k Kind) CRD() *apiextensionsv1.CustomResourceDefinition {
	open := true
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open}
	spec, root := *anything.DeepCopy(), *anything.DeepCopy()
	spec.Properties = map[string]apiextensionsv1.JSONSchemaProps{"managementPolicies": {
		Type: "array", Default: &apiextensionsv1.JSON{Raw: []byte(`["*"]`)},
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
	}}
	root.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "members." + k.group, Labels: map[string]string{"script": k.group}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: k.group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "members", Kind: "Member", Categories: []string{"crossplane", "managed"}},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
			}},
		},
	}
}

// Create creates a managed resource in the namespace default. If manager is not empty, it uses server-side apply with that field
// manager.
func (k Kind) Create(ctx context.Context, name, externalName, manager string) error {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"forProvider": map[string]any{"org": "acme"}}}}
	o.SetAPIVersion(k.group + "/v1")
	o.SetKind("Member")
	o.SetName(name)
	o.SetAnnotations(map[string]string{ExternalName: externalName})
	if manager != "" {
		_, err := k.client.Namespace("default").Apply(ctx, name, o, metav1.ApplyOptions{FieldManager: manager})
		return err
	}
	_, err := k.client.Namespace("default").Create(ctx, o, metav1.CreateOptions{FieldManager: "kubectl-create"})
	return err
}

// Annotations returns the annotations of a managed resource.
func (k Kind) Annotations(ctx context.Context, name string) (map[string]string, error) {
	o, err := k.client.Namespace("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return o.GetAnnotations(), nil
}

// Annotate sets an annotation of a managed resource, as a user does.
func (k Kind) Annotate(ctx context.Context, name, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		return err
	}
	_, err = k.client.Namespace("default").Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// Observed returns an error until all managed resources have a condition.
func (k Kind) Observed(ctx context.Context) error {
	list, err := k.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, one := range list.Items {
		if _, found, _ := unstructured.NestedSlice(one.Object, "status", "conditions"); !found {
			return fmt.Errorf("%s is not observed", one.GetName())
		}
	}
	return nil
}

// Start runs the provider. Its external system has resources with these names, and ignores letter case. stop returns when the
// provider has ended.
func (k Kind) Start(existing ...string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // It outlives the call that starts it.
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(pollEvery)
		defer ticker.Stop()
		for {
			k.observe(ctx, existing)
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}

// observe reconciles all managed resources once. It writes each status at the resourceVersion that it has read, as
// crossplane-runtime does. The next pass handles a status that could not be written.
func (k Kind) observe(ctx context.Context, existing []string) {
	list, err := k.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range list.Items {
		o := &list.Items[i]
		if !reconcile(o, existing) {
			continue
		}
		_, _ = k.client.Namespace(o.GetNamespace()).UpdateStatus(ctx, o, metav1.UpdateOptions{FieldManager: "provider"})
	}
}

// reconcile writes the status in memory, and returns false if it stays as it is.
func reconcile(o *unstructured.Unstructured, existing []string) bool {
	status, reason, message := "False", "ReconcileError", "as the external system says"
	policies, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "managementPolicies")
	id := strings.ToLower(o.GetAnnotations()[ExternalName])
	switch {
	case o.GetAnnotations()[Paused] == "true":
		reason = "ReconcilePaused"
	case slices.Contains(existing, id):
		status, reason = "True", "ReconcileSuccess"
		_ = unstructured.SetNestedField(o.Object, id, "status", "atProvider", "id") // the status is an object
	case strings.HasPrefix(id, Unanswered):
		message = "the external system does not answer"
	case slices.Equal(policies, []string{"Observe"}):
		message = "observe failed: external resource does not exist"
	}
	if now, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions"); len(now) == 1 {
		if c, ok := now[0].(map[string]any); ok && c["reason"] == reason && c["message"] == message {
			return false
		}
	}
	_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{
		"type": "Synced", "status": status, "reason": reason, "message": message, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}}, "status", "conditions")
	return true
}
