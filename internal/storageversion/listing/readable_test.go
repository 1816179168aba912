package listing_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/storageversion/listing"
)

// TestReadable: while the watch cache of the API server is not filled, every object is read, until it is.
func TestReadable(t *testing.T) {
	const pages = 20
	unfilled := apierrors.NewTooManyRequests("storage is (re)initializing", 1)
	for name, tc := range map[string]struct {
		cache       error
		answers     int // before the cache is filled
		perPage     time.Duration
		asked, read int64
		fails       bool // the last page
	}{
		"filled":                   {asked: 1},
		"filled in a moment":       {cache: unfilled, answers: 2, asked: 3},
		"filled while it is read":  {cache: unfilled, answers: 5, perPage: time.Second, asked: 6, read: 4},
		"read before it is filled": {cache: unfilled, answers: 100, asked: 4, read: pages},
		"an object that is unread": {cache: unfilled, answers: 100, asked: 4, read: pages, fails: true},
		"no cache":                 {cache: apierrors.NewTimeoutError("slow", 0), answers: 100, perPage: time.Second, asked: 1, read: pages},
		"an answer about no cache": {cache: apierrors.NewBadRequest("no"), answers: 100, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked, read atomic.Int64
				cached := func(context.Context) error {
					if asked.Add(1) <= int64(tc.answers) {
						return tc.cache
					}
					return nil
				}
				list := listing.Lister(func(_ context.Context, _ schema.GroupVersionResource, limit int64, _ string) (*metav1.PartialObjectMetadataList, error) {
					time.Sleep(tc.perPage)
					if limit != 7 {
						t.Errorf("a page of %d objects, want 7", limit)
					}
					page := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
					n := read.Add(1)
					switch {
					case n < pages:
						page.Continue = strconv.FormatInt(n, 10)
					case tc.fails:
						return nil, errors.New("unreadable")
					}
					page.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: strconv.FormatInt(n, 10), UID: "1", ResourceVersion: "5"}}}
					return page, nil
				})
				err := list.CheckReadable(t.Context(), schema.GroupVersionResource{Resource: "widgets"}, cached, 7)
				if (err != nil) != tc.fails {
					t.Errorf("error %v, want one: %t", err, tc.fails)
				}
				if asked.Load() != tc.asked || read.Load() < tc.read || read.Load() > tc.read+1 { // the next page is read ahead
					t.Errorf("asked %d times about the cache and read %d pages, want %d and %d", asked.Load(), read.Load(), tc.asked, tc.read)
				}
			})
		})
	}
}
