package cluster

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Create creates an object of KubeVirt's with the status it has, and returns it as the
// server has it then.
func Create(ctx context.Context, client dynamic.Interface, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource := Resource(o.GroupVersionKind())
	of := client.Resource(resource).Namespace(o.GetNamespace())
	created, err := of.Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	status, has := o.Object["status"]
	if !has || !definitions[resource.GroupResource().String()] {
		return created, nil
	}
	created.Object["status"] = status
	updated, err := of.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("write the status of %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return updated, nil
}

// Resource of a kind of KubeVirt's.
func Resource(kind schema.GroupVersionKind) schema.GroupVersionResource {
	return kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
}
