package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// UserObject is a Secret or a ConfigMap that a user has made, without its data.
type UserObject struct {
	Kind, Name string
	// Content has the metadata, for a rule.
	Content map[string]any
}

func (o UserObject) String() string { return o.Kind + " " + o.Name }

// UserObjects returns the Secrets and ConfigMaps of users in the namespace of a cluster, sorted by kind and name. It omits what
// Kubernetes, OpenShift and Open Cluster Management make, and what some tool writes to each namespace.
func (h Hub) UserObjects(ctx context.Context, cluster string) ([]UserObject, error) {
	var found []UserObject
	for _, kind := range []string{kindSecret, kindConfigMap} {
		items, err := h.metadata(ctx, corev1.SchemeGroupVersion.WithKind(kind), cluster, h.batchReads.ofCore(kind))
		if err != nil {
			return nil, err
		}
		for i := range items {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&items[i])
			if err != nil {
				return nil, fmt.Errorf("read the metadata of %s %s/%s: %w", kind, cluster, items[i].Name, err)
			}
			if !resource.OfUser(cluster, content) {
				continue
			}
			isCommon, err := h.isCommon(ctx, kind, items[i].Name)
			if err != nil {
				return nil, err
			}
			if !isCommon {
				found = append(found, UserObject{kind, items[i].Name, content})
			}
		}
	}
	return found, nil
}

// isCommon reports whether namespace default has an object of the same kind and name. It reads the namespace once in a pass.
func (h Hub) isCommon(ctx context.Context, kind, name string) (bool, error) {
	c := h.common
	if c == nil {
		c = &common{names: map[string]map[string]bool{}}
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.names[kind] == nil {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := h.Client.List(ctx, list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return false, err
		}
		c.names[kind] = map[string]bool{}
		for i := range list.Items {
			c.names[kind][list.Items[i].Name] = true
		}
	}
	return c.names[kind][name], nil
}
