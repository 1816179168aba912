package crossplane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
)

// Create creates the external resource, and records the outcome if it is known. Otherwise create-pending and the token
// are kept, and the next observation finds out.
func (r *reconciliation[M, K, X]) Create(ctx context.Context, mg M) (managed.ExternalCreation, error) {
	nameBefore := meta.GetExternalName(mg)
	created, err := r.external.Create(ctx, copyOf(mg))
	if err != nil {
		return managed.ExternalCreation{}, r.createFailed(ctx, mg, err)
	}
	creation := managed.ExternalCreation{ConnectionDetails: created.Connection}
	c := changes{}
	if created.Operation != "" {
		c.set(AnnotationOperation, created.Operation)
		c.remove(meta.AnnotationKeyExternalCreatePending)
		return creation, r.record(ctx, mg, nameBefore, c)
	}
	name, err := r.Names.Codec.Format(created.Key)
	if err != nil {
		return creation, r.explain(mg, fmt.Errorf("%w: the external resource was created, and its key can't be a name: %w", ErrOutcomeUnknown, err))
	}
	c = r.binding(name)
	c.set(meta.AnnotationKeyExternalCreateSucceeded, time.Now().Format(time.RFC3339))
	return creation, r.record(ctx, mg, nameBefore, c)
}

func (r *reconciliation[M, K, X]) record(ctx context.Context, mg M, nameBefore string, c changes) error {
	if err := r.journal.writeCritical(ctx, mg, nameBefore, c); err != nil {
		return fmt.Errorf("%w: the external resource was created, and its name could not be recorded: %w", ErrOutcomeUnknown, external(err))
	}
	return nil
}

// createFailed records a failed creation and restores the external name.
func (r *reconciliation[M, K, X]) createFailed(ctx context.Context, mg M, err error) error {
	if outcomeUnknown(err) {
		return r.explain(mg, fmt.Errorf("%w: %w", ErrOutcomeUnknown, external(err)))
	}
	c := changes{}
	c.remove(meta.AnnotationKeyExternalCreatePending)
	c.set(meta.AnnotationKeyExternalCreateFailed, time.Now().Format(time.RFC3339))
	// If this fails, the next observation finds out that nothing was created.
	if writeErr := r.journal.writeCritical(ctx, mg, meta.GetExternalName(mg), c); writeErr != nil {
		return errors.Join(external(err), external(writeErr))
	}
	return r.explain(mg, external(err))
}

// Update changes the external resource to match the spec. It records a changed key before and after the update.
func (r *reconciliation[M, K, X]) Update(ctx context.Context, mg M) (managed.ExternalUpdate, error) {
	if err := r.announceName(ctx, mg); err != nil {
		return managed.ExternalUpdate{}, err
	}
	key, err := r.external.Update(ctx, copyOf(mg), r.key, r.observed)
	if err != nil {
		return managed.ExternalUpdate{}, external(err)
	}
	name, err := r.Names.Codec.Format(key)
	if err != nil {
		return managed.ExternalUpdate{}, fmt.Errorf("the external resource was updated, and its key can't be a name: %w", err)
	}
	driftAfterUpdate(mg)
	c := changes{}
	c.remove(AnnotationPendingName)
	if name == r.name {
		return managed.ExternalUpdate{}, r.journal.write(ctx, mg, c)
	}
	c.set(meta.AnnotationKeyExternalName, name)
	c.set(AnnotationBoundName, name)
	if err := r.journal.writeCritical(ctx, mg, meta.GetExternalName(mg), c); err != nil {
		return managed.ExternalUpdate{}, fmt.Errorf("the external resource was updated, and its new name %q could not be recorded: %w", name, external(err))
	}
	return managed.ExternalUpdate{}, nil
}

// announceName records the new name before an update. Without it, a crash between the update and its record would look
// like a deleted resource.
func (r *reconciliation[M, K, X]) announceName(ctx context.Context, mg M) error {
	if r.KeyFromSpec == nil {
		return nil
	}
	want, err := r.Names.Codec.Format(r.KeyFromSpec(copyOf(mg)))
	if err != nil || want == r.name {
		return err
	}
	if err := r.checkMutable(want); err != nil {
		return err
	}
	c := changes{}
	c.set(AnnotationPendingName, want)
	return r.journal.write(ctx, mg, c)
}

// checkMutable compares the segments of two canonical names. In these, a slash is always a separator.
func (r *reconciliation[M, K, X]) checkMutable(want string) error {
	segments := r.Names.Codec.Describe().Segments
	now, then := strings.Split(r.name, "/"), strings.Split(want, "/")
	if len(now) != len(segments) || len(then) != len(segments) {
		return nil // A codec of the author's own.
	}
	for i, segment := range segments {
		if now[i] != then[i] && !segment.Mutable {
			return &IdentityChangedError{Segment: segment.Name, Name: r.name, Want: want}
		}
	}
	return nil
}

// Delete deletes the external resource. Asynchronous deletions return at once: the next
// observation sees whether the resource still exists.
func (r *reconciliation[M, K, X]) Delete(ctx context.Context, mg M) (managed.ExternalDelete, error) {
	if !r.exists {
		return managed.ExternalDelete{}, r.explain(mg, fmt.Errorf("delete: %w, which creates the external resource", ErrOperationRunning))
	}
	if r.lifecycle.State == Deleting {
		return managed.ExternalDelete{}, nil
	}
	if err := r.checkUnshared(ctx, mg); err != nil {
		return managed.ExternalDelete{}, err
	}
	r.claims.drop(mg, r.name)
	err := r.external.Delete(ctx, r.key)
	if errors.Is(err, ErrNotFound) && !errors.Is(err, ErrParentNotFound) {
		return managed.ExternalDelete{}, nil
	}
	return managed.ExternalDelete{}, external(err)
}

// checkUnshared refuses a deletion while another object has the external name.
func (r *reconciliation[M, K, X]) checkUnshared(ctx context.Context, mg M) error {
	if r.excepts(RuleUniqueNames) {
		return nil
	}
	others, err := r.claims.others(ctx, mg, func(other resource.Managed) bool {
		reading, err := r.Names.Read(meta.GetExternalName(other), other.GetName())
		return err == nil && reading.HasKey() && reading.Name == r.name || other.GetAnnotations()[AnnotationBoundName] == r.name
	})
	if err != nil || len(others) == 0 {
		return err
	}
	shared := &SharedNameError{Name: r.name, Others: others}
	r.claims.refuse(mg, shared)
	return r.explain(mg, shared)
}

// Disconnect implements managed.TypedExternalClient.
func (r *reconciliation[M, K, X]) Disconnect(ctx context.Context) error {
	if r.external.Close == nil {
		return nil
	}
	return r.external.Close(ctx)
}
