package crossplane

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotations with the state that must survive a crash, and a restore that drops the status. Their values do not change
// while a creation fails repeatedly: a changed annotation reconciles the object at once, which would defeat the
// backoff.
const (
	// AnnotationBoundName is the external name under which the external resource was last seen. It distinguishes a name
	// that a user has changed from a deleted resource.
	AnnotationBoundName = "godwit.dev/bound-external-name"
	// AnnotationToken is the mark that a creation leaves in the external system, as a proof that the resource comes
	// from this object. It exists from before the first attempt until the name is known.
	AnnotationToken = "godwit.dev/creation-token" //nolint:gosec // It proves who has created a resource, and opens nothing.
	// AnnotationOperation is the ID of the operation that creates the resource.
	AnnotationOperation = "godwit.dev/pending-operation"
	// AnnotationPendingName is the name that an update gives to the resource.
	AnnotationPendingName = "godwit.dev/pending-external-name"
	// AnnotationFormat is the format of the other annotations; 1 if it is missing. The reconciler does not touch an
	// object of another format.
	AnnotationFormat = "godwit.dev/state-format"
)

// formatText is the format of the annotations that this release writes and reads.
const formatText = "1"

// fieldOwner is the manager of the annotations in metadata.managedFields.
const fieldOwner = client.FieldOwner("godwit-external-name")

// Token returns the mark that Create sets in the external system and Ours looks for, for example as a tag, a
// description, or an idempotency key. All attempts at one creation have the same token. It is empty before the first
// attempt, and for creations by a release without Godwit.
func Token(mg resource.Managed) string { return mg.GetAnnotations()[AnnotationToken] }

// NewerFormatError means that a newer release wrote the annotations of the object. The provider leaves
// the object and the external resource alone.
type NewerFormatError struct {
	// Format is the value of [AnnotationFormat].
	Format string
}

func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("annotation %s is %q, and this provider reads annotations of format %s: a newer release of the provider wrote them; run that release, or a newer one",
		AnnotationFormat, e.Format, formatText)
}

// checkFormat refuses an object whose annotations a newer release wrote: this release could miss a creation that has
// begun.
func checkFormat(mg metav1.Object) error {
	if format, ok := mg.GetAnnotations()[AnnotationFormat]; ok && format != formatText {
		return &NewerFormatError{Format: format}
	}
	return nil
}

// creationUnknown reports whether a creation has begun and its outcome is not recorded.
//
// A creation with a token records every known outcome by removing create-pending:
// crossplane-runtime compares timestamps of a second, and misses a crash in the second of the
// attempt before.
func creationUnknown(mg metav1.Object) bool {
	if mg.GetAnnotations()[AnnotationToken] != "" {
		return mg.GetAnnotations()[meta.AnnotationKeyExternalCreatePending] != ""
	}
	return meta.ExternalCreateIncomplete(mg)
}

// changes are annotations to write; nil removes one.
type changes map[string]*string

func (c changes) set(key, value string) { c[key] = &value }
func (c changes) remove(key string)     { c[key] = nil }

// addFurther adds annotations of a provider, except those that have a meaning for crossplane-runtime or for this package.
func (c changes) addFurther(annotations map[string]string) {
	for key, value := range annotations {
		domain, _, _ := strings.Cut(key, "/")
		if domain != "crossplane.io" && domain != "godwit.dev" {
			c.set(key, value)
		}
	}
}

// withoutPresent returns the changes that the object does not have yet.
func (c changes) withoutPresent(o metav1.Object) changes {
	left := changes{}
	for key, value := range c {
		current, exists := o.GetAnnotations()[key]
		if value == nil && exists || value != nil && (!exists || current != *value) {
			left[key] = value
		}
	}
	return left
}

// apply changes the object in memory.
func (c changes) apply(o metav1.Object) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for key, value := range c {
		if value == nil {
			delete(annotations, key)
			continue
		}
		annotations[key] = *value
	}
	o.SetAnnotations(annotations)
}

// journal writes only annotations of managed resources. No write resets the status in memory, and every write fails if
// the object has changed meanwhile.
type journal struct {
	client client.Client
	// live reads from the API server.
	live client.Reader
}

// write persists changes at the object's resourceVersion, and updates the resourceVersion in memory.
func (j journal) write(ctx context.Context, mg client.Object, c changes) error {
	c = c.withoutPresent(mg)
	if len(c) == 0 {
		return nil
	}
	if err := j.patch(ctx, mg, map[string]any{"annotations": c}); err != nil {
		return fmt.Errorf("write annotations: %w", err)
	}
	c.apply(mg)
	return nil
}

// patch sends a copy of the object, because the client decodes the response, with the old status, into its argument.
func (j journal) patch(ctx context.Context, o client.Object, metadata map[string]any) error {
	if err := checkFormat(o); err != nil {
		return err
	}
	metadata["resourceVersion"] = o.GetResourceVersion()
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	written, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", o)
	}
	if err := j.client.Patch(ctx, written, client.RawPatch(types.MergePatchType, body), fieldOwner); err != nil {
		return err
	}
	o.SetResourceVersion(written.GetResourceVersion())
	return nil
}

const (
	// criticalTimeout bounds the attempts to record the outcome of a creation. It is within
	// the 30 s that crossplane-runtime allows for writes after an external call.
	criticalTimeout = 20 * time.Second
	firstPause      = 100 * time.Millisecond
)

// writeCritical persists the outcome of a creation, even if the context of the creation has ended. It also retries
// after a conflict, and keeps the changes of the other client, including the external name. nameBefore is the name at
// the start of the creation.
func (j journal) writeCritical(ctx context.Context, mg client.Object, nameBefore string, c changes) error {
	c = c.withoutPresent(mg)
	return retryWrite(ctx,
		func(ctx context.Context) error { return j.write(ctx, mg, c) },
		func(ctx context.Context) error { return j.reread(ctx, mg, nameBefore, c) })
}

// retryWrite retries a write. After a conflict it calls reread first. It ends early only if no attempt can succeed.
func retryWrite(ctx context.Context, write, reread func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), criticalTimeout)
	defer cancel()
	for pause := firstPause; ; pause *= 2 {
		err := write(ctx)
		if err == nil || kerrors.IsNotFound(err) || kerrors.IsInvalid(err) || kerrors.IsForbidden(err) {
			return err
		}
		if kerrors.IsConflict(err) && reread(ctx) == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// ownKeys are the annotations that crossplane-runtime and a provider's Create write.
var ownKeys = []string{
	meta.AnnotationKeyExternalName, meta.AnnotationKeyExternalCreatePending,
	meta.AnnotationKeyExternalCreateSucceeded, meta.AnnotationKeyExternalCreateFailed,
}

// writeOwn persists Godwit's and crossplane-runtime's annotations as they are in memory. It does not know the name at
// the start of the creation. So the name in memory replaces one that another client has written: without its name, the
// resource would be lost. After a failed creation, the other client's name is kept.
func (j journal) writeOwn(ctx context.Context, o client.Object) error {
	c := changes{}
	for _, key := range ownKeys {
		if value, ok := o.GetAnnotations()[key]; ok {
			c.set(key, value)
		}
	}
	failed := meta.GetExternalCreateFailed(o).After(meta.GetExternalCreateSucceeded(o))
	return retryWrite(ctx,
		func(ctx context.Context) error { return j.patch(ctx, o, map[string]any{"annotations": c}) },
		func(ctx context.Context) error {
			err := j.reread(ctx, o, meta.GetExternalName(o), changes{})
			if err == nil && failed && meta.GetExternalName(o) != "" {
				delete(c, meta.AnnotationKeyExternalName)
			}
			c.apply(o)
			return err
		})
}

// reread copies the annotations and the resourceVersion of the live object. It keeps a name that a user has written
// during the creation: AnnotationBoundName still has the created resource, and the next observation reports both.
func (j journal) reread(ctx context.Context, mg client.Object, nameBefore string, c changes) error {
	live, ok := mg.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", mg)
	}
	if err := j.live.Get(ctx, client.ObjectKeyFromObject(mg), live); err != nil {
		return err
	}
	if live.GetUID() != mg.GetUID() {
		return fmt.Errorf("%s was deleted and created again", mg.GetName())
	}
	if meta.GetExternalName(live) != nameBefore {
		delete(c, meta.AnnotationKeyExternalName)
	}
	mg.SetAnnotations(live.GetAnnotations())
	mg.SetResourceVersion(live.GetResourceVersion())
	return nil
}

// finalizer adds and removes crossplane-runtime's finalizer with patches. The runtime's own implementation writes the
// whole object and loses the status that Observe has set.
type finalizer struct {
	journal journal
	name    string
	// removed is called with an object that the provider no longer manages.
	removed func(metav1.Object)
}

func (f finalizer) AddFinalizer(ctx context.Context, o resource.Object) error {
	if meta.FinalizerExists(o, f.name) {
		return nil
	}
	return f.write(ctx, o, append(o.GetFinalizers(), f.name))
}

func (f finalizer) RemoveFinalizer(ctx context.Context, o resource.Object) error {
	if !meta.FinalizerExists(o, f.name) {
		return nil
	}
	left := []string{}
	for _, name := range o.GetFinalizers() {
		if name != f.name {
			left = append(left, name)
		}
	}
	if err := client.IgnoreNotFound(f.write(ctx, o, left)); err != nil {
		return err
	}
	f.removed(o)
	return nil
}

func (f finalizer) write(ctx context.Context, o resource.Object, finalizers []string) error {
	object, ok := o.(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", o)
	}
	if err := f.journal.patch(ctx, object, map[string]any{"finalizers": finalizers}); err != nil {
		return fmt.Errorf("write finalizers: %w", err)
	}
	o.SetFinalizers(finalizers)
	return nil
}
