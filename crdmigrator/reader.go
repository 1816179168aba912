package crdmigrator

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/internal/storageversion/listing"
)

// listThrough lists with an embedder's reader, which must read live.
func listThrough(reader client.Reader, kinds meta.RESTMapper) listing.Lister {
	return func(ctx context.Context, r schema.GroupVersionResource, limit int64, token string) (*metav1.PartialObjectMetadataList, error) {
		kind, err := kinds.KindFor(r)
		if err != nil {
			return nil, notDiscovered(r, err)
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err = reader.List(ctx, list, client.Limit(limit), client.Continue(token))
		return list, notDiscovered(r, err)
	}
}

// notDiscovered turns the error of a client that did not find the resource in discovery into a
// 404. Discovery of a new CRD may come later than its objects, and a 404 is retried then.
func notDiscovered(r schema.GroupVersionResource, err error) error {
	if !meta.IsNoMatchError(err) {
		return err
	}
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "list", r.GroupResource(), "", err.Error(), 0, true)
}

// cachedObjects lists the objects of an embedder's cache by their Go type. A list of
// another type would start another informer.
func cachedObjects(c client.Reader, newList func() client.ObjectList) func(context.Context) ([]*metav1.PartialObjectMetadata, error) {
	return func(ctx context.Context) ([]*metav1.PartialObjectMetadata, error) {
		list := newList()
		if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		var objects []*metav1.PartialObjectMetadata
		err := meta.EachListItem(list, func(item runtime.Object) error {
			o, err := meta.Accessor(item)
			if err == nil {
				objects = append(objects, meta.AsPartialObjectMetadata(o))
			}
			return err
		})
		return objects, err
	}
}
