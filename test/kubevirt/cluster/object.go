package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Create creates an object of KubeVirt with its status, and returns it as the API server stored
// it.
func Create(ctx context.Context, client dynamic.Interface, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource := Resource(o.GroupVersionKind())
	of := client.Resource(resource).Namespace(o.GetNamespace())
	created, err := of.Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	status, has := o.Object["status"]
	if !has || !statusByCRD[resource.GroupResource().String()] {
		return created, nil
	}
	created.Object["status"] = status
	updated, err := of.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("write the status of %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return updated, nil
}

// Resource returns the resource of a kind of KubeVirt.
func Resource(kind schema.GroupVersionKind) schema.GroupVersionResource {
	return kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
}

// CreateRevision creates a ControllerRevision whose data has exactly the given bytes. Clients
// that encode the whole object compact the data.
func CreateRevision(ctx context.Context, core kubernetes.Interface, r *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	const placeholder = `"DATA"`
	envelope := r.DeepCopy()
	envelope.TypeMeta = metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"}
	envelope.Data.Raw = []byte(placeholder)
	body, err := json.Marshal(envelope)
	if err != nil {
		return nil, err
	}
	body = bytes.Replace(body, []byte(placeholder), r.Data.Raw, 1)
	created := &appsv1.ControllerRevision{}
	return created, core.AppsV1().RESTClient().Post().Namespace(r.Namespace).Resource("controllerrevisions").
		SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx).Into(created)
}
