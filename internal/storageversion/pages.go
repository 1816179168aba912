package storageversion

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/walk"
)

// source is where a pass has its pages from, and what they prove.
type source struct {
	list     Lister
	borrowed bool // list is an embedder's reader
	coverage coverage
}

// pass visits every object once.
func (r *run) pass(ctx context.Context, beforePage func(context.Context, walk.Report) error) error {
	var err error
	r.progress.begin()
	pages := walk.ListOptions{PageObjects: r.options.PageObjects, Attempts: r.options.Attempts, Retry: r.retry}
	r.storage, err = walk.Run(ctx, r.source.list.objects(ctx, r.epoch().gvr, pages), r.rewriter.visit, walk.Options{
		Limiter:  r.options.Limiter,
		Attempts: r.options.Attempts,
		Retry:    r.retry,
		Cause:    cause,
		Reason:   failureReason,
		OnPage:   beforePage,
		OnEnd:    r.rewriter.tally.end,
		OnObject: func(w walk.Report) {
			r.progress.tell(func(now *Report) {
				now.Storage, now.Candidates, now.ManagedFields, now.Waiting = w, r.cached, r.rewriter.tally.report(), ""
			})
		},
	})
	r.moveCursor(r.storage.Cursor)
	var list *listError
	switch {
	case errors.As(err, &list) && ctx.Err() == nil:
		return fmt.Errorf("migrate %s: %w", r.name, r.unlisted(list))
	case err != nil:
		return fmt.Errorf("migrate %s: %w", r.name, err)
	}
	return nil
}

// retry is the package's, and tells what is waited for.
func (r *run) retry(err error) (time.Duration, bool) {
	wait, again := retry(err)
	if again {
		r.progress.tell(func(now *Report) { now.Waiting = quote.Line(apierror.Message(err)) })
	}
	return wait, again
}

// unlisted classifies the answer to a list.
func (r *run) unlisted(err error) *UnlistedError {
	crd := r.epoch().crd
	e := unlisted(crd, err)
	e.Starting = e.starting(crd, r.client.Clock.Now())
	return e
}

// beforePage makes sure that what was true when the run began still is, and
// that the checkpoint is saved before the first write.
func (r *run) beforePage(ctx context.Context, w walk.Report) error {
	if err := r.cover(ctx, w); err != nil {
		return err
	}
	if err := r.ensureCheckpoint(ctx, w.ResourceVersion); err != nil || r.evidence.isStored() {
		return err
	}
	r.moveCursor(w.Cursor)
	return r.evidence.saveNowAndThen(ctx)
}

// ensureCheckpoint makes sure that the evidence holds for what was listed at a
// resourceVersion, which becomes the evidence where there is none yet.
func (r *run) ensureCheckpoint(ctx context.Context, listed string) error {
	if err := request.Retry(ctx, r.recheck); err != nil || r.evidence.isStored() {
		return err
	}
	since := r.evidence.since()
	if since == "" {
		return r.evidence.begin(ctx, listed, r.options.Policy)
	}
	older, err := newer(since, listed)
	if err == nil && !older {
		return nil
	}
	r.evidence.void()
	r.options.Recent.Forget(r.epoch().key.UID)
	return errors.Join(err, fmt.Errorf("%w: %s was listed at resourceVersion %s, which is older than the checkpoint: was etcd restored?",
		ErrChanged, r.epoch().gvr.GroupResource(), listed))
}

// moveCursor moves the checkpoint's cursor forward. Only the API server's own list shows
// every object before it: a list of an embedder's reader moves no cursor, and a run that
// resumes skips what it has rewritten by resourceVersion.
func (r *run) moveCursor(key string) {
	if !r.source.borrowed {
		r.evidence.moveCursor(key)
	}
}

// listError tells a list that failed from all else that ends a pass.
type listError struct{ error }

func (e *listError) Unwrap() error { return e.error }

// Lister lists one page of objects' metadata over all namespaces.
type Lister func(ctx context.Context, r schema.GroupVersionResource, limit int64, token string) (*metav1.PartialObjectMetadataList, error)

// objects walks over the metadata of all objects of a resource.
func (l Lister) objects(ctx context.Context, resource schema.GroupVersionResource, o walk.ListOptions) walk.Source[*metav1.PartialObjectMetadata] {
	fetch := func(ctx context.Context, limit int64, token string) (walk.Page[*metav1.PartialObjectMetadata], string, error) {
		return l.page(ctx, resource, limit, token)
	}
	return walk.List(ctx, fetch, o)
}

func (l Lister) page(ctx context.Context, resource schema.GroupVersionResource, limit int64, token string) (walk.Page[*metav1.PartialObjectMetadata], string, error) {
	list, err := l(ctx, resource, limit, token)
	switch {
	case err != nil:
		return walk.Page[*metav1.PartialObjectMetadata]{}, "", &listError{fmt.Errorf("list %s: %w", resource.GroupResource(), apierror.RetryForbidden(err))}
	case list.ResourceVersion == "" || list.ResourceVersion == "0":
		return walk.Page[*metav1.PartialObjectMetadata]{}, "", &IncompleteListError{Resource: resource.GroupResource(), Reader: true}
	}
	page := walk.Page[*metav1.PartialObjectMetadata]{
		Items:           make([]*metav1.PartialObjectMetadata, len(list.Items)),
		ResourceVersion: list.ResourceVersion,
		Remaining:       kube.Remaining(list),
	}
	for i := range list.Items {
		item := list.Items[i] // on its own: one that waits for another attempt must not hold the whole page
		page.Items[i] = &item
	}
	return page, list.Continue, nil
}
