package storageversion

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/walk"
)

// Write is how an object is written again. Each of them makes the API server
// encode the object anew; they differ in what they cost and what they may meet.
type Write string

const (
	// WritePatch is an empty merge patch: the cheapest, and it can't conflict.
	// The default.
	WritePatch Write = "patch"
	// WriteStatusPatch is the same on /status, which admission webhooks of the
	// main resource are usually not asked about. The storage version must have
	// the status subresource.
	WriteStatusPatch Write = "status-patch"
	// WriteUpdate reads the object live and puts it back as it is. A conflict
	// means that another client wrote it in between; the object is Deferred.
	WriteUpdate Write = "update"
	// WriteApply is a server-side apply of nothing, by the field manager
	// crdmigrator and tied to UID and resourceVersion.
	WriteApply Write = "apply"
	// WriteStatusApply is the same on /status.
	WriteStatusApply Write = "status-apply"
)

// Writes are all there are, the default first.
var Writes = []Write{WritePatch, WriteStatusPatch, WriteUpdate, WriteApply, WriteStatusApply}

// applyManager owns what an apply leaves behind, which is nothing unless an
// object had no managedFields at all.
const applyManager = "crdmigrator"

func (w Write) orDefault() Write {
	if w == "" {
		return WritePatch
	}
	return w
}

// Subresource is what is written to; empty for the object itself.
func (w Write) Subresource() string {
	if w == WriteStatusPatch || w == WriteStatusApply {
		return "status"
	}
	return ""
}

// onObject is the same write on the object itself.
func (w Write) onObject() Write {
	switch w {
	case WriteStatusPatch:
		return WritePatch
	case WriteStatusApply:
		return WriteApply
	}
	return w
}

// verbs are the rights that a write needs on its resource, beside list.
func (w Write) verbs() []string {
	if w == WriteUpdate {
		return []string{"get", "update"}
	}
	return []string{"patch"}
}

// patchesObject: the write needs the very right that a cleanup needs.
func (w Write) patchesObject() bool {
	return w.Subresource() == "" && slices.Equal(w.verbs(), []string{"patch"})
}

// write sends the write that the policy names and returns the object after it.
func (r *rewriter) write(ctx context.Context, o *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	w, e := r.options.Write.orDefault(), r.epoch.Load()
	if w == WriteUpdate {
		return r.client.UpdateObject(ctx, e.gvr, o, r.options.DryRun)
	}
	p, err := w.patch(e.gvr.GroupVersion().WithKind(e.kind), o)
	if err != nil {
		return nil, err
	}
	p.DryRun = r.options.DryRun
	return r.client.PatchObject(ctx, e.gvr, o, p)
}

// patch is what a write that is one sends for an object.
func (w Write) patch(kind schema.GroupVersionKind, o metav1.Object) (request.Patch, error) {
	if w != WriteApply && w != WriteStatusApply {
		return request.Patch{Kind: types.MergePatchType, Body: []byte("{}"), Subresource: w.Subresource(), Manager: kube.FieldManager}, nil
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": kind.GroupVersion().String(),
		"kind":       kind.Kind,
		"metadata": map[string]any{
			"name": o.GetName(), "namespace": o.GetNamespace(), "uid": o.GetUID(), "resourceVersion": o.GetResourceVersion(),
		},
	})
	return request.Patch{Kind: types.ApplyPatchType, Body: body, Subresource: w.Subresource(), Manager: applyManager}, err
}

// conflict decides what a 409 means. To an empty patch, which carries no
// resourceVersion, it means "again". To an update it means that this pass leaves
// the object alone, as its users expect. To an apply it means that another client
// wrote the object, and that settles it if the live object proves so; what a
// listed resourceVersion says proves nothing.
func (r *rewriter) conflict(ctx context.Context, o *metav1.PartialObjectMetadata, err error) (godwit.Outcome, error) {
	switch r.options.Write.orDefault() {
	case WritePatch, WriteStatusPatch:
		return godwit.Failed, err // retried
	case WriteUpdate:
		return godwit.Deferred, err
	}
	live, findErr := r.client.Find(ctx, r.epoch.Load().gvr, o)
	switch {
	case findErr != nil:
		return godwit.Failed, fmt.Errorf("look at %s after a conflict: %w", walk.Key(o), apierror.RetryForbidden(findErr))
	case live == nil:
		return godwit.Gone, nil
	}
	if fresh, err := newer(live.ResourceVersion, r.baseline.Load().since); err != nil || fresh {
		return godwit.Skipped, err
	}
	return godwit.Deferred, err
}
