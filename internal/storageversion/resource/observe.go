package resource

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
	"github.com/godwit-dev/godwit/internal/storageversion/listing"
)

// Observe reads the facts about one resource, with a few small requests. It changes nothing.
func (r *Rewriter) Observe(ctx context.Context, resource Resource, servers []Server) (Facts, error) {
	f := Facts{Resource: resource, Servers: servers, Now: r.client.Clock.Now()}
	if refusal(f) != nil {
		return f, nil
	}
	if resource.Custom {
		var err error
		if f.CRD, err = r.client.CRD(ctx, resource.Name()); err != nil {
			return f, fmt.Errorf("read customresourcedefinition %s: %w", resource.Name(), err)
		}
		if refusal(f) != nil {
			return f, nil
		}
		f.Resource.Version = kube.StorageVersion(f.CRD)
	}
	f.Stale = append(f.Stale, settle.SettlementSince(servers, f.Now, f.Now, r.terms()).Stale...)
	var err error
	if f.Denied, err = kube.Denied(ctx, r.client, RequiredPermissions(resource, r.options)); err != nil {
		return f, err
	}
	if len(f.Denied) > 0 {
		f.User = kube.UserName(ctx, r.client)
		return f, nil
	}
	return f, r.count(ctx, &f)
}

// count lists one object, and the API server adds how many follow. If it answers with an error, this is a fact, not an error.
func (r *Rewriter) count(ctx context.Context, f *Facts) error {
	var list *metav1.PartialObjectMetadataList
	err := quicklist.Retry(ctx, func(ctx context.Context) (err error) {
		list, err = r.list(ctx, f.Resource.GroupVersionResource, 1, "")
		return err
	})
	var answered apierrors.APIStatus
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &answered), errors.Is(err, quicklist.ErrOver):
		f.ListError = err
		return nil
	case err != nil:
		return fmt.Errorf("list %s: %w", f.Resource.Name(), err)
	}
	if after := kube.Remaining(list); after != kube.UnknownCount {
		f.Objects = new(int64(len(list.Items)) + after)
	}
	if f.Objects == nil || *f.Objects > 1 {
		return r.checkReadable(ctx, f)
	}
	return nil
}

// checkReadable finds out whether the API server can read every object: it may lack the key of some of them.
func (r *Rewriter) checkReadable(ctx context.Context, f *Facts) error {
	resource := f.Resource.GroupVersionResource
	cached := func(ctx context.Context) error { return r.client.Cached(ctx, resource, quicklist.Limit) }
	err := listing.Lister(r.list).CheckReadable(ctx, resource, cached, r.options.PageObjects)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case apierror.IsAnswer(err), errors.Is(err, quicklist.ErrOver):
		f.ListError = err
		return nil
	}
	return err
}

// list lists a page of the objects in scope.
func (r *Rewriter) list(ctx context.Context, resource schema.GroupVersionResource, limit int64, token string) (*metav1.PartialObjectMetadataList, error) {
	return r.client.ObjectsIn(ctx, resource, r.options.Namespace, limit, token)
}

// ClusterID is the UID of the namespace kube-system, by which one cluster is told from another.
func (r *Rewriter) ClusterID(ctx context.Context) (types.UID, error) {
	o, err := kube.Metadata(ctx, r.client.Get().AbsPath("api", "v1", "namespaces", metav1.NamespaceSystem))
	if err != nil {
		return "", fmt.Errorf("read namespace kube-system: %w", err)
	}
	return o.UID, nil
}
