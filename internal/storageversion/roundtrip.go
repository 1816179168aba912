package storageversion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/listing"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
	"github.com/godwit-dev/godwit/walk"
)

// RoundTrips writes all objects through their old versions as dry runs, and compares the answers with the objects. It returns nil
// if no object needs that: the schemas prove that the storage version keeps each value, or no old version is served. settled
// means that each API server stores the storage version. progress may be nil.
func (m *Migrator) RoundTrips(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, settled bool, progress func(walk.Report)) (*decision.RoundTrips, error) {
	if known := m.knownLosses(ctx, crd); known != nil {
		return known, nil
	}
	var all *decision.RoundTrips
	for _, old := range values.Unproven(crd) {
		if !old.Served {
			continue // another check reports it
		}
		t := &roundTripper{target: m.target(decision.Facts{CRD: crd}), version: old.Name, settled: settled, onLoss: m.options.OnLoss}
		now, err := t.tryAll(ctx, m, progress)
		if err != nil {
			return nil, fmt.Errorf("try each object of %s through version %s: %w", crd.Name, old.Name, err)
		}
		all = all.Merge(now)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.losses[crd.Name] = lossesAt{kube.GenerationOf(crd), all}
	return all, nil
}

// knownLosses returns the round trips of an earlier call, if the objects that they name still lose each of the values. A program that
// is blocked need not try all objects at each attempt. It returns nil if it has to.
func (m *Migrator) knownLosses(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) *decision.RoundTrips {
	m.mu.Lock()
	known := m.losses[crd.Name]
	m.mu.Unlock()
	if known.generation != kube.GenerationOf(crd) || !known.found.Loses() || m.options.OnLoss != nil {
		return nil
	}
	var examples []*metav1.PartialObjectMetadata
	for _, loss := range known.found.Losses {
		namespace, name, namespaced := strings.Cut(loss.Examples[0], "/")
		if !namespaced {
			namespace, name = "", namespace
		}
		examples = append(examples, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
	now := m.target(decision.Facts{CRD: crd}).RoundTrips(ctx, examples)
	for _, loss := range known.found.Losses {
		if !slices.ContainsFunc(now.Losses, func(l values.Loss) bool { return l.Path == loss.Path }) {
			return nil
		}
	}
	return known.found
}

// roundTripper writes objects through one old version of their CRD.
type roundTripper struct {
	target  PreflightTarget
	version string
	settled bool
	onLoss  func(LostValues) error

	mu     sync.Mutex
	losses values.Losses
}

func (t *roundTripper) tryAll(ctx context.Context, m *Migrator, progress func(walk.Report)) (*decision.RoundTrips, error) {
	list := m.client.WholeObjects(ctx, kube.Scope{Resource: t.target.resourceAt(t.version)}, walk.ListOptions{Attempts: m.options.Attempts, Retry: retry})
	pages := func(yield func(walk.Page[*unstructured.Unstructured], error) bool) {
		for page, err := range list {
			if err != nil {
				err = listing.Failed(err)
			}
			if !yield(page, err) {
				return
			}
		}
	}
	report, err := walk.Run(ctx, pages, t.visit, walk.Options{
		Limiter: m.options.Limiter, Attempts: m.options.Attempts, Retry: retry, Cause: cause, Reason: FailureReason, OnObject: progress,
	})
	if list := (*listing.Error)(nil); errors.As(err, &list) && ctx.Err() == nil {
		return nil, m.unlisted(ctx, t.target.Facts.CRD, list)
	}
	if err != nil {
		return nil, err
	}
	trips := &decision.RoundTrips{Objects: report.Counts.Total(), All: true, Failed: report.Counts.Failed + report.Counts.Deferred, Failures: report.Failures}
	trips.Losses, trips.More = t.losses.List()
	return trips, nil
}

// RoundTrips writes some objects through their old versions as dry runs, as [Migrator.RoundTrips] does for all.
func (t PreflightTarget) RoundTrips(ctx context.Context, objects []*metav1.PartialObjectMetadata) *decision.RoundTrips {
	var all *decision.RoundTrips
	for _, old := range values.Unproven(t.Facts.CRD) {
		if !old.Served {
			continue
		}
		r := &roundTripper{target: t, version: old.Name}
		now := &decision.RoundTrips{}
		for _, o := range objects {
			_, err := r.readAgain(ctx, o)
			if ctx.Err() != nil {
				break
			}
			now.Objects++
			if err != nil {
				now.Failed++
				now.Failures = append(now.Failures, godwit.Failure{Namespace: o.Namespace, Name: o.Name, Finding: godwit.Finding{Reason: FailureReason(err), Message: err.Error()}, Err: err})
			}
		}
		now.Losses, now.More = r.losses.List()
		all = all.Merge(now)
	}
	return all
}

// visit is the action on one object. Skipped means that a rewrite does not change the object.
func (t *roundTripper) visit(ctx context.Context, before *unstructured.Unstructured) (godwit.Outcome, error) {
	err := t.compare(ctx, before)
	switch {
	case apierrors.IsConflict(err) && t.settled:
		return godwit.Skipped, nil // the other client's write has stored the object at the storage version
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return t.readAgain(ctx, before)
	}
	return t.outcome(ctx, before, err)
}

// readAgain tries an object as it is now; Gone if it is deleted.
func (t *roundTripper) readAgain(ctx context.Context, o walk.Object) (godwit.Outcome, error) {
	now, err := t.target.Client.FindWhole(ctx, t.target.resourceAt(t.version), o)
	if err == nil && now == nil {
		return godwit.Gone, nil
	}
	if err == nil {
		err = t.compare(ctx, now)
	}
	return t.outcome(ctx, o, err)
}

func (t *roundTripper) outcome(ctx context.Context, o walk.Object, err error) (godwit.Outcome, error) {
	switch {
	case err == nil:
		return godwit.Unchanged, nil
	case refuses(err) && t.refusesRewrite(ctx, o):
		return godwit.Skipped, nil
	}
	return godwit.Failed, fmt.Errorf("try it at %s: %w", t.version, apierror.RetryForbidden(err))
}

// compare finds the values that an object, read at the old version, loses when it is written: an empty patch at that version
// makes the API server encode the object at the storage version, and decode it for the answer. The error is a conflict if
// another client has written the object since it was read.
func (t *roundTripper) compare(ctx context.Context, before *unstructured.Unstructured) error {
	w := t.target.Policy.Write
	switch {
	case w.Subresource() != "" && kube.HasStatusAt(t.target.Facts.CRD, t.version):
		w = decision.WriteStatusPatch
	case w != decision.WriteUpdate: // for which the user may lack the permission to patch
		w = decision.WritePatch
	}
	after, err := t.target.DryRun(ctx, t.version, w, before)
	if err != nil {
		return err
	}
	if after.GetResourceVersion() != before.GetResourceVersion() {
		return apierrors.NewConflict(t.target.resourceAt(t.version).GroupResource(), before.GetName(), errors.New("another client wrote it meanwhile"))
	}
	lost := values.Lost(kube.SchemaOf(t.target.Facts.CRD, t.version), before.Object, after.Object)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.losses.Add(walk.Key(before), values.Paths(lost))
	if t.onLoss == nil || len(lost) == 0 {
		return nil
	}
	return t.onLoss(LostValues{before.GetNamespace(), before.GetName(), before.GetUID(), t.version, lost})
}

// refusesRewrite reports whether the API server refuses the rewrite of an object, too, so that the object keeps its values at the
// old version.
func (t *roundTripper) refusesRewrite(ctx context.Context, o walk.Object) bool {
	storage := kube.StorageVersion(t.target.Facts.CRD)
	stored, err := t.target.Client.FindWhole(ctx, t.target.resourceAt(storage), o)
	if err != nil || stored == nil {
		return false
	}
	_, err = t.target.DryRun(ctx, storage, t.target.Policy.Write, stored)
	return err != nil && refuses(err)
}

func refuses(err error) bool {
	class := apierror.Of(err).Class
	return class == apierror.Denied || class == apierror.Refused
}
