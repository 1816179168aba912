package storageversion

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/walk"
)

// ReasonIncompleteList means that a list did not show every object: a trim would
// leave the others at a version that storedVersions no longer lists.
const ReasonIncompleteList = "IncompleteList"

// IncompleteListError reports a list of objects that a trim must not rely on. An
// embedder's reader causes it when it is bound to one namespace, filters, or reads
// a cache.
type IncompleteListError struct {
	Resource schema.GroupResource
	// Listed is the number of objects that the list showed, and Counted the API
	// server's own number. Both are 0 for a list that is not live.
	Listed, Counted int64
	// Live is false for a list without a resourceVersion, as a cache makes it,
	// and for one that is older than the last write.
	Live bool
	// Reader means that an embedder's reader made the list. Otherwise the API server's
	// own answer arrived without some objects.
	Reader bool
}

func (e *IncompleteListError) Error() string {
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

// coverage compares the objects that a pass lists with those that the API server
// counts. Both numbers are of one resourceVersion, so that no write by another
// client makes them differ.
type coverage struct {
	// resourceVersion is the first page's; empty before it.
	resourceVersion string
	// promised is the number of objects on the first page and after it, as the
	// list says, and counted the API server's own number.
	promised, counted int64
	// continued means that later pages are of another resourceVersion: the list
	// took long, and the API server compacted the first one away.
	continued bool
}

// proof is what coverage amounts to.
type proof int

const (
	// proven means that the list showed every object.
	proven proof = iota
	// refuted means that the list missed objects.
	refuted
	// inconclusive means that the numbers can't be compared.
	inconclusive
)

// begun decides after the first page.
func (c coverage) begun() proof {
	switch {
	case c.counted >= 0 && c.promised == c.counted:
		return proven
	case c.promised >= 0 && c.counted >= 0:
		return refuted
	}
	return inconclusive
}

// ended decides after the last page, when a number of objects was listed. A list that
// continued at a later resourceVersion may show fewer objects because other clients
// deleted some, or because the reader drops some: its number proves nothing.
func (c coverage) ended(listed int64) proof {
	switch {
	case c.counted < 0, c.continued:
		return inconclusive
	case listed < c.counted:
		return refuted
	}
	return proven
}

// cover takes in a page, before anything on it is written.
func (r *run) cover(ctx context.Context, w walk.Report) error {
	if since := r.evidence.since(); r.source.borrowed && since != "" {
		if stale, err := newer(since, w.ResourceVersion); err != nil || stale {
			return errors.Join(err, &IncompleteListError{Resource: r.epoch().gvr.GroupResource(), Reader: true})
		}
	}
	c := &r.source.coverage
	if c.resourceVersion != "" {
		c.continued = c.continued || w.ResourceVersion != c.resourceVersion
		return nil
	}
	c.resourceVersion, c.promised, c.counted = w.ResourceVersion, w.Remaining, w.Remaining
	if !r.source.borrowed {
		return nil // the list is the API server's own
	}
	err := request.Retry(ctx, func(ctx context.Context) (err error) {
		c.counted, err = r.client.CountAt(ctx, r.epoch().gvr, w.ResourceVersion)
		return err
	})
	if err != nil {
		return fmt.Errorf("count %s: %w", r.epoch().gvr.GroupResource(), err)
	}
	if c.begun() == refuted {
		return r.incomplete(c.promised, r.source.borrowed)
	}
	return nil
}

func (r *run) incomplete(listed int64, reader bool) error {
	return &IncompleteListError{Resource: r.epoch().gvr.GroupResource(), Listed: listed, Counted: r.source.coverage.counted, Live: true, Reader: reader}
}

// passOverAll visits every object that the API server has. Where the numbers of
// an embedder's reader can't be compared, a second pass goes by a list of our own:
// what it finds at an old version, the reader has missed.
func (r *run) passOverAll(ctx context.Context) error {
	if err := r.pass(ctx, r.beforePage); err != nil {
		return err
	}
	first := r.storage
	listed := first.Counts.Total()
	switch proof := r.source.coverage.ended(listed); {
	case proof == refuted:
		r.evidence.checkpoint.Cursor = ""
		return r.incomplete(listed, r.source.borrowed)
	case proof == proven, !r.source.borrowed, !first.Counts.Settled():
		return nil
	}
	r.source = source{list: r.client.Objects}
	r.evidence.listAnew()
	if err := r.pass(ctx, r.beforePage); err != nil {
		return err
	}
	second := r.storage.Counts
	switch {
	case second.Migrated > 0:
		r.source.coverage.counted = second.Total()
		return r.incomplete(listed, true)
	case second.Settled():
		r.storage = first
	}
	return nil
}
