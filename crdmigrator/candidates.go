package crdmigrator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator/internal/request"
	"github.com/godwit-dev/godwit/walk"
)

// listThrough lists with an embedder's reader, which is to read live.
func listThrough(reader client.Reader, kinds meta.RESTMapper) Lister {
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

// notDiscovered makes a 404 of the error of a client that did not find the resource in the
// API server's discovery documents: the document of a new CRD comes later than its objects.
func notDiscovered(r schema.GroupVersionResource, err error) error {
	if !meta.IsNoMatchError(err) {
		return err
	}
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "list", r.GroupResource(), "", err.Error(), 0, true)
}

// cachedObjects lists objects as an embedder's cache has them, by their Go type:
// any other type of list would start an informer of its own.
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

// latest is the resourceVersion that the API server is at. An embedder's reader
// may be behind it, even behind the change of the storage version.
func (r *run) latest(ctx context.Context) (resourceVersion string, err error) {
	err = request.Retry(ctx, func(ctx context.Context) error {
		page, _, err := Lister(r.client.Objects).page(ctx, r.epoch().gvr, 1, "")
		resourceVersion = page.ResourceVersion
		return err
	})
	if list := (*listError)(nil); errors.As(err, &list) && ctx.Err() == nil {
		err = r.unlisted(list)
	}
	return resourceVersion, err
}

// migrateCached rewrites the candidates, where an embedder's cache has any. What fails
// here is tried again, and counted, by the pass over all objects, and what needs a
// cleanup is left to it. C is read before, from the API server itself: the cache may
// be behind it.
func (r *run) migrateCached(ctx context.Context) error {
	if r.source.borrowed {
		latest, err := r.latest(ctx)
		if err != nil {
			return err
		}
		if err := r.ensureCheckpoint(ctx, latest); err != nil {
			return err
		}
	}
	if r.options.Candidates == nil {
		return nil
	}
	candidates, err := r.options.Candidates(ctx)
	if err != nil {
		return fmt.Errorf("read %s from the cache: %w", r.epoch().gvr.GroupResource(), err)
	}
	pages := func(yield func(walk.Page[*metav1.PartialObjectMetadata], error) bool) {
		remaining := len(candidates)
		for items := range slices.Chunk(candidates, walk.DefaultPageObjects) {
			remaining -= len(items)
			if !yield(walk.Page[*metav1.PartialObjectMetadata]{Items: items, ResourceVersion: r.evidence.since(), Remaining: int64(remaining)}, nil) {
				return
			}
		}
	}
	r.cached, err = walk.Run(ctx, pages, r.rewriter.visitCandidate, walk.Options{
		Limiter: r.options.Limiter, Attempts: r.options.Attempts, Retry: retry, Cause: cause, Reason: failureReason,
		OnPage: func(ctx context.Context, w walk.Report) error { return r.ensureCheckpoint(ctx, w.ResourceVersion) },
		OnObject: func(w walk.Report) {
			r.progress.tell(func(now *Report) { *now = Report{Candidates: w} })
		},
	})
	if err != nil {
		return fmt.Errorf("migrate %s, as the cache has them: %w", r.name, err)
	}
	return nil
}

func (r *rewriter) visitCandidate(ctx context.Context, o *metav1.PartialObjectMetadata) (godwit.Outcome, error) {
	done, err := r.done(o)
	switch {
	case err != nil:
		return godwit.Failed, err
	case done, !r.options.skips(CleanupManagedFieldsPhase) && slices.ContainsFunc(o.ManagedFields, r.epoch.Load().cleaner.stale):
		return godwit.Skipped, nil
	}
	return r.rewriteAlone(ctx, o)
}
