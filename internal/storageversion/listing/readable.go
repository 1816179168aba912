package listing

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/walk"
)

// askCacheAgain bounds how much a client reads that the API server has read as well. The API server fills its watch cache with
// a million objects in about a minute, which a client reads in minutes.
const askCacheAgain = 2 * time.Second

// Readable is an error where the API server can't read every object. Cached asks whether its
// watch cache is filled, which takes all of them. If it is not, the objects themselves
// tell why, or that they can be read by now. They are read until the cache is filled; after a
// timeout, which an API server without watch cache causes, all of them are.
func (l Lister) Readable(ctx context.Context, resource schema.GroupVersionResource, cached func(context.Context) error, pageObjects int64) error {
	err := quicklist.Retry(ctx, cached)
	filling := apierrors.IsTooManyRequests(err)
	if !filling && !quicklist.TimedOut(err) {
		return nil // another answer says nothing about the cache
	}
	fetch := func(ctx context.Context, limit int64, token string) (page walk.Page[*metav1.PartialObjectMetadata], next string, err error) {
		err = quicklist.Attempt(ctx, func(ctx context.Context) error {
			page, next, err = l.Page(ctx, resource, limit, token)
			return err
		})
		return page, next, err
	}
	asked := time.Now()
	for _, err := range walk.List(ctx, fetch, walk.ListOptions{PageObjects: pageObjects, Attempts: quicklist.Attempts, Retry: quicklist.Transient}) {
		if err != nil {
			return err
		}
		if !filling || time.Since(asked) < askCacheAgain {
			continue
		}
		if quicklist.Attempt(ctx, cached) == nil {
			return nil
		}
		asked = time.Now()
	}
	return nil
}
