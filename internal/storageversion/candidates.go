package storageversion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/internal/storageversion/listing"
	"github.com/godwit-dev/godwit/walk"
)

// latest is the resourceVersion that the API server is at. An embedder's reader
// may be behind it, even behind the change of the storage version.
func (r *run) latest(ctx context.Context) (resourceVersion string, err error) {
	err = request.Retry(ctx, func(ctx context.Context) error {
		page, _, err := listing.Lister(r.client.Objects).Page(ctx, r.epoch().gvr, 1, "")
		resourceVersion = page.ResourceVersion
		return err
	})
	if list := (*listing.Error)(nil); errors.As(err, &list) && ctx.Err() == nil {
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
			if !yield(walk.Page[*metav1.PartialObjectMetadata]{Items: items, ResourceVersion: r.evidence.Since(), Remaining: int64(remaining)}, nil) {
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
