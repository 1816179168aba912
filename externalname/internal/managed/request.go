package managed

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

// Read reads a managed resource. It returns an empty one if the object does not exist.
func Read(ctx context.Context, c *kube.Client, r schema.GroupVersionResource, o walk.Object) (Resource, error) {
	text, err := kube.Body(kube.Do(ctx, c.Get().AbsPath(kube.ObjectPath(r, o)...).SetHeader("Accept", runtime.ContentTypeJSON)))
	if apierrors.IsNotFound(err) {
		return Resource{}, nil
	}
	if err != nil {
		return Resource{}, err
	}
	decoded, err := kube.Decode(text)
	return Of(decoded), err
}

// Write writes changes of a managed resource, at the resourceVersion that was read.
func (c *Changes) Write(ctx context.Context, client *kube.Client, r schema.GroupVersionResource, m Resource) error {
	body, err := c.patch(m)
	if err != nil {
		return err
	}
	_, err = kube.Metadata(ctx, client.Patch(types.MergePatchType).AbsPath(kube.ObjectPath(r, m)...).
		Param("fieldManager", kube.FieldManager).Body(body))
	return err
}
