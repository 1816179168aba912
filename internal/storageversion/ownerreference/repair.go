package ownerreference

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/walk"
)

// rereads bounds how often one attempt reads a dependent again because its references have changed.
const rereads = 5

// Repairer changes references to the owners of one CRD.
type Repairer struct {
	Scanner  *Scanner
	Owners   Owners
	Existing Existing
	// DryRun sends each patch as a dry run. Dependents that the API server would accept count as Skipped.
	DryRun bool

	mu       sync.Mutex
	resolved map[schema.GroupVersionResource]target
}

// target is the version at which the dependents of one resource are written, or why they are not.
type target struct {
	resource schema.GroupVersionResource
	err      error
}

// Run repairs the references of dependents, as Each has found them. The report counts dependents. An interrupted run leaves no
// trace: the next scan finds what is left. progress may be nil.
func (r *Repairer) Run(ctx context.Context, dependents []*Dependent, progress func(walk.Report)) (walk.Report, error) {
	pages := func(yield func(walk.Page[*Dependent], error) bool) {
		yield(walk.Page[*Dependent]{Items: dependents}, nil)
	}
	return walk.Run(ctx, pages, r.repair, walk.Options{
		Limiter: r.Scanner.limiter, Retry: apierror.Transient, Reason: reasonOf, OnObject: progress,
	})
}

// repair patches one dependent. If the dependent has changed, it is read again, and the next patch is made for its present
// references.
func (r *Repairer) repair(ctx context.Context, d *Dependent) (godwit.Outcome, error) {
	for read := 0; ; read++ {
		indexes := r.Owners.Repairable(d, r.Existing)
		if len(indexes) == 0 {
			return godwit.Unchanged, nil // another client has repaired them
		}
		resource, err := r.storage(ctx, d.Resource)
		if err == nil {
			err = r.patch(ctx, resource, d, indexes)
		}
		switch {
		case err == nil && r.DryRun:
			return godwit.Skipped, nil
		case err == nil:
			return godwit.Migrated, nil
		case !stale(err) || read == rereads:
			return godwit.Failed, fmt.Errorf("repair the ownerReferences of %s: %w", d, err)
		}
		now, findErr := r.Scanner.client.Find(ctx, d.Resource, d)
		switch {
		case findErr != nil:
			return godwit.Failed, fmt.Errorf("read %s again: %w", d, findErr)
		case now == nil || now.UID != d.UID:
			return godwit.Gone, nil
		case now.ResourceVersion == d.ResourceVersion:
			return godwit.Failed, fmt.Errorf("repair the ownerReferences of %s: %w", d, err)
		}
		d.ObjectMeta = now.ObjectMeta
	}
}

// reasonOf is the reason of a failed repair. An answer of the admission plugin OwnerReferencesPermissionEnforcement means that a
// permission is missing: the user may not delete the dependent.
func reasonOf(err error) *godwit.Reason {
	reason := storageversion.FailureReason(err)
	if reason == decision.ReasonObjectInvalid && apierrors.IsForbidden(err) {
		return decision.ReasonForbidden
	}
	return reason
}

// stale reports whether the answer may mean that the dependent has changed since it was read: a test of the patch failed, or
// the dependent is gone.
func stale(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err)
}

// storage is a resource at its storage version. A write of a custom resource at another version can lose fields. Kubernetes' own
// resources lose none.
func (r *Repairer) storage(ctx context.Context, resource schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	if !strings.Contains(resource.Group, ".") {
		return resource, nil // no CRD has such a group
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.resolved[resource]; ok {
		return known.resource, known.err
	}
	t := target{resource: resource}
	crd, err := r.Scanner.client.CRD(ctx, resource.GroupResource().String())
	switch {
	case apierrors.IsNotFound(err): // it is no custom resource
	case err != nil:
		return resource, err // the next attempt may get an answer
	case !kube.Serves(crd, kube.StorageVersion(crd)):
		t.err = fmt.Errorf("the API server does not serve the storage version of %s", crd.Name)
	default:
		t.resource = kube.ResourceOf(crd)
	}
	if r.resolved == nil {
		r.resolved = map[schema.GroupVersionResource]target{}
	}
	r.resolved[resource] = t
	return t.resource, t.err
}

func (r *Repairer) patch(ctx context.Context, resource schema.GroupVersionResource, d *Dependent, indexes []int) error {
	body, err := json.Marshal(r.Owners.Operations(d, indexes))
	if err != nil {
		return err
	}
	_, err = r.Scanner.client.PatchObject(ctx, resource, &metav1.PartialObjectMetadata{ObjectMeta: d.ObjectMeta}, request.Patch{
		Kind: types.JSONPatchType, Body: body, Manager: kube.FieldManager, DryRun: r.DryRun,
	})
	return err
}
