package storageversion

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/internal/storageversion/listing"
	"github.com/godwit-dev/godwit/internal/storageversion/managedfields"
	"github.com/godwit-dev/godwit/walk"
)

// Objects rewrites the objects of one resource without a CRD: package resource decides when, and keeps
// the evidence. It cleans no managedFields and trims nothing.
type Objects struct {
	Client   *request.Client
	Limiter  *walk.Limiter
	Resource schema.GroupVersionResource
	// List lists the objects of a scope, at that version.
	List   listing.Lister
	DryRun bool
	// MaxFailures bounds the failures that a report names; 0 means walk.DefaultFailures.
	MaxFailures int
	// PageObjects is the size of a page; 0 means walk.DefaultPageObjects.
	PageObjects int64
	// Resume is the evidence of an interrupted run; zero for none.
	Resume evidence.Baseline
	// CRD is that of the resource, if it has one.
	CRD *apiextensionsv1.CustomResourceDefinition
	// OnPage is called before the writes of each page. Its error ends the pass.
	OnPage func(context.Context, walk.Report) error
	// OnObject is called after each object, one call at a time, and must be quick.
	OnObject func(walk.Report)
}

// Rewrite visits every object once.
func (o Objects) Rewrite(ctx context.Context) (walk.Report, error) {
	w := &rewriter{client: o.Client, options: Options{DryRun: o.DryRun}}
	e := &epoch{gvr: o.Resource}
	if o.CRD != nil {
		e.kind, e.cleaner = o.CRD.Spec.Names.Kind, managedfields.For(o.CRD, o.Client.Clock.Now)
	}
	w.epoch.Store(e)
	w.baseline.Store(&o.Resume)
	var coverage listing.Coverage
	pages := o.List.Objects(ctx, o.Resource, walk.ListOptions{PageObjects: o.PageObjects, Retry: retry})
	report, err := walk.Run(ctx, pages, w.rewriteObject, walk.Options{
		Limiter: o.Limiter, Retry: retry, Cause: cause, Reason: FailureReason, MaxFailures: o.MaxFailures, OnObject: o.OnObject,
		OnPage: func(ctx context.Context, now walk.Report) error {
			if coverage.ResourceVersion == "" {
				coverage = listing.Coverage{ResourceVersion: now.ResourceVersion, Promised: now.Remaining, Counted: now.Remaining}
			}
			coverage.Continued = coverage.Continued || now.ResourceVersion != coverage.ResourceVersion
			return o.OnPage(ctx, now)
		},
	})
	if err != nil {
		return report, fmt.Errorf("rewrite %s: %w", o.Resource.GroupResource(), err)
	}
	if listed := report.Counts.Total(); coverage.Ended(listed) == listing.Refuted {
		return report, &listing.IncompleteError{Resource: o.Resource.GroupResource(), Listed: listed, Counted: coverage.Counted, Live: true}
	}
	return report, nil
}

// rewriteObject is the action on one object. An object that loses its managedFields fails, although it
// is rewritten.
func (r *rewriter) rewriteObject(ctx context.Context, o *metav1.PartialObjectMetadata) (godwit.Outcome, error) {
	done, err := r.done(o)
	switch {
	case err != nil:
		return godwit.Failed, err
	case done:
		return godwit.Skipped, nil
	}
	outcome, lost, err := r.rewrite(ctx, o)
	if lost != nil {
		return godwit.Failed, lost
	}
	return outcome, err
}
