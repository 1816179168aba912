// Package listing lists the objects of a CRD, proves that a list showed every object that the API server has, and finds out
// whether the API server can read every object.
//
// Read listing.go, then readable.go.
package listing

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

// Lister lists one page of objects' metadata over all namespaces.
type Lister func(ctx context.Context, r schema.GroupVersionResource, limit int64, token string) (*metav1.PartialObjectMetadataList, error)

// Objects walks over the metadata of all objects of a resource.
func (l Lister) Objects(ctx context.Context, resource schema.GroupVersionResource, o walk.ListOptions) walk.Source[*metav1.PartialObjectMetadata] {
	fetch := func(ctx context.Context, limit int64, token string) (walk.Page[*metav1.PartialObjectMetadata], string, error) {
		return l.Page(ctx, resource, limit, token)
	}
	o.PageBytes = walk.DefaultPageBytes
	return walk.List(ctx, fetch, o)
}

// Page lists one page.
func (l Lister) Page(ctx context.Context, resource schema.GroupVersionResource, limit int64, token string) (walk.Page[*metav1.PartialObjectMetadata], string, error) {
	list, err := l(ctx, resource, limit, token)
	switch {
	case err != nil:
		return walk.Page[*metav1.PartialObjectMetadata]{}, "", Failed(fmt.Errorf("list %s: %w", resource.GroupResource(), err))
	case list.ResourceVersion == "" || list.ResourceVersion == "0":
		return walk.Page[*metav1.PartialObjectMetadata]{}, "", &IncompleteError{Resource: resource.GroupResource(), Reader: true}
	}
	page := walk.Page[*metav1.PartialObjectMetadata]{
		Items:           make([]*metav1.PartialObjectMetadata, len(list.Items)),
		ResourceVersion: list.ResourceVersion,
		Remaining:       kube.Remaining(list),
	}
	for i := range list.Items {
		item := list.Items[i] // a copy: an object that waits for another attempt must not keep the whole page in memory
		page.Items[i] = &item
		page.Bytes += sizeOf(&item)
	}
	return page, list.Continue, nil
}

// sizeOf is about the size of an object's metadata: of the parts that can be large.
func sizeOf(o *metav1.PartialObjectMetadata) int64 {
	const names = 500
	size := names
	for _, texts := range []map[string]string{o.Annotations, o.Labels} {
		for key, value := range texts {
			size += len(key) + len(value)
		}
	}
	for _, e := range o.ManagedFields {
		if size += names; e.FieldsV1 != nil {
			size += len(e.FieldsV1.GetRawBytes())
		}
	}
	return int64(size)
}

// Error marks the failure of a list among the errors that end a pass.
type Error struct{ err error }

// Failed marks an error as the failure of a list.
func Failed(err error) *Error { return &Error{apierror.RetryForbidden(err)} }

func (e *Error) Error() string { return e.err.Error() }

func (e *Error) Unwrap() error { return e.err }

// Reasons are those of a list that does not show every object.
var Reasons godwit.Catalog

// ReasonIncompleteList means that a list did not show every object: a trim would
// leave the others at a version that storedVersions no longer lists.
var ReasonIncompleteList = Reasons.Declare(godwit.Reason{
	Name: "IncompleteList", UserAction: true,
	Meaning: "The reader of an embedded migrator does not show every object: it is bound to one namespace, filters, or reads a cache. status.storedVersions is not trimmed.",
	Fix:     godwit.Do("give the migrator an APIReader that reads all namespaces live, as `mgr.GetAPIReader()` does"),
})

// IncompleteError reports a list of objects that a trim must not rely on. An
// embedder's reader causes it when it is bound to one namespace, filters, or reads
// a cache.
type IncompleteError struct {
	Resource schema.GroupResource
	// Listed is the number of objects that the list showed, and Counted the API
	// server's own number. Both are 0 for a list that is not live.
	Listed, Counted int64
	// Live is false for a list without a resourceVersion, as a cache returns it,
	// and for a list that is older than the checkpoint.
	Live bool
	// Reader means that an embedder's reader made the list. Otherwise the API server's
	// own answer arrived without some objects.
	Reader bool
}

func (e *IncompleteError) Error() string {
	remedy := "let APIReader read all namespaces live, as mgr.GetAPIReader() does"
	if !e.Reader {
		remedy = "a proxy in front of the API server may lose objects: use the address of the API server itself"
	}
	what := fmt.Sprintf("shows %d objects, the API server counts %d", e.Listed, e.Counted)
	if !e.Live {
		what = "is not live: it comes from a cache and may miss objects"
	}
	return fmt.Sprintf("%s: the list of %s %s; storedVersions stays as it is; %s", ReasonIncompleteList, e.Resource, what, remedy)
}

// Coverage compares the objects that a pass lists with those that the API server
// counts. Both numbers are of one resourceVersion, so that no write by another
// client makes them differ.
type Coverage struct {
	// ResourceVersion is the first page's; empty before it.
	ResourceVersion string
	// Promised is the number of objects on the first page and after it, as the
	// list says, and Counted the API server's own number.
	Promised, Counted int64
	// Continued means that later pages are of another resourceVersion: the list
	// took long, and the API server compacted the first one away.
	Continued bool
}

// Proof is what a [Coverage] proves.
type Proof int

const (
	// Proven means that the list showed every object.
	Proven Proof = iota
	// Refuted means that the list missed objects.
	Refuted
	// Inconclusive means that the numbers can't be compared.
	Inconclusive
)

// Begun decides after the first page.
func (c Coverage) Begun() Proof {
	switch {
	case c.Counted >= 0 && c.Promised == c.Counted:
		return Proven
	case c.Promised >= 0 && c.Counted >= 0:
		return Refuted
	}
	return Inconclusive
}

// Ended decides after the last page, when a number of objects was listed. A list that
// continued at a later resourceVersion may show fewer objects because other clients
// deleted some, or because the reader drops some: its number proves nothing.
func (c Coverage) Ended(listed int64) Proof {
	switch {
	case c.Counted < 0, c.Continued:
		return Inconclusive
	case listed < c.Counted:
		return Refuted
	}
	return Proven
}
