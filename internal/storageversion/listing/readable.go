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

// askCacheAgain is the time between two questions to the watch cache while the objects are read. The API server fills its watch
// cache with a million objects in about a minute; a client takes several minutes to read as many.
const askCacheAgain = 2 * time.Second

// CheckReadable returns an error if the API server can't read every object. cached asks whether the
// watch cache is filled, for which the API server has to read all objects. If it is not,
// CheckReadable lists the objects to find one that can't be read, until the cache is filled. After
// a timeout, which an API server without watch cache causes, it lists all of them.
func (l Lister) CheckReadable(ctx context.Context, resource schema.GroupVersionResource, cached func(context.Context) error, pageObjects int64) error {
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
	for _, err := range walk.List(ctx, fetch, walk.ListOptions{PageObjects: pageObjects, PageBytes: walk.DefaultPageBytes, Attempts: quicklist.Attempts, Retry: quicklist.Transient}) {
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
