package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/manifest"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/wait"
)

// deleteLeavesNothing: the object is gone after the external resource.
func deleteLeavesNothing(ctx context.Context, e *environment) (string, error) {
	o, _, err := e.createBound(ctx)
	if err != nil {
		return "", err
	}
	if err := errors.Join(e.delete(ctx, o), e.awaitGone(ctx, o)); err != nil {
		return "", err
	}
	return "", e.checkCreated(ctx, 0)
}

// deleteAcceptsMissing: the external resource is gone when the call to delete it arrives.
func deleteAcceptsMissing(ctx context.Context, e *environment) (string, error) {
	o, name, err := e.createBound(ctx)
	if err != nil {
		return "", err
	}
	failed := make(chan error, 1)
	e.calls.once(Delete, Fault{Before: func() { failed <- e.system.Remove(context.WithoutCancel(ctx), name) }})
	seen, err := e.record(ctx, o)
	if err != nil {
		return "", err
	}
	err = errors.Join(e.delete(ctx, o), e.awaitGone(ctx, o))
	states := seen.end()
	if err != nil {
		return "", err
	}
	select {
	case err := <-failed:
		if err != nil {
			return "", asPreparationError(err)
		}
	default:
		return "", errors.New("the provider has not called Delete")
	}
	for _, state := range states {
		if refused(state) {
			return "", fmt.Errorf("a resource that was gone already was reported as an error: %s", describe(state))
		}
	}
	return "", nil
}

// deleteOnce: the external system takes its time to delete.
func deleteOnce(ctx context.Context, e *environment) (string, error) {
	o, _, err := e.createBound(ctx)
	if err != nil {
		return "", err
	}
	finish, err := e.system.SlowDeletion(ctx)
	if err != nil {
		return "", asPreparationError(err)
	}
	if err := errors.Join(e.delete(ctx, o), e.awaitCalls(ctx, Delete, 1)); err != nil {
		return "", err
	}
	err = e.checkWhileQuiet(ctx, func() error {
		if n := e.calls.count(Delete); n > 1 {
			return fmt.Errorf("the provider has called Delete %d times, while the external system deletes", n)
		}
		live, err := e.get(ctx, o)
		if err == nil && len(live.GetFinalizers()) == 0 {
			err = errors.New("the object has no finalizer, while the external resource exists")
		}
		return err
	})
	if finishErr := finish(ctx); finishErr != nil {
		return "", errors.Join(err, asPreparationError(finishErr))
	}
	if err != nil {
		return "", err
	}
	return "", e.awaitGone(ctx, o)
}

// deleteMalformed: an object is deleted whose name has become malformed.
func deleteMalformed(ctx context.Context, e *environment) (string, error) {
	o, name, err := e.createBound(ctx)
	if err != nil {
		return "", err
	}
	malformed := ""
	for _, malformed = range e.kind.malformed() {
		if err = e.rename(ctx, o, malformed); !kerrors.IsInvalid(err) && !kerrors.IsForbidden(err) {
			break
		}
	}
	switch {
	case kerrors.IsInvalid(err) || kerrors.IsForbidden(err):
		return "admission refuses each malformed name", nil
	case err != nil:
		return "", asPreparationError(err)
	}
	if _, err := e.awaitRefused(ctx, o, fmt.Sprintf("its external name %q is malformed", malformed)); err != nil {
		return "", err
	}
	if err := e.delete(ctx, o); err != nil {
		return "", asPreparationError(err)
	}
	err = e.checkWhileQuiet(ctx, func() error {
		if _, err := e.get(ctx, o); err != nil {
			return fmt.Errorf("the object is gone, and external resource %q is left behind: %w", name, err)
		}
		return e.calls.checkNone(Delete)
	})
	if err != nil {
		return "", err
	}
	if err := e.rename(ctx, o, name); err != nil {
		return "", asPreparationError(err)
	}
	if err := e.awaitGone(ctx, o); err != nil {
		return "", fmt.Errorf("after the name is corrected: %w", err)
	}
	return "", e.checkCreated(ctx, 0)
}

// deleteUnnamed: an object without a name is deleted, and an external resource fits its spec. The external system refuses
// the creation, so that the provider has seen the object.
func deleteUnnamed(ctx context.Context, e *environment) (string, error) {
	o := e.manifest()
	existing, err := e.system.Add(ctx, o)
	if err != nil {
		return "", asPreparationError(err)
	}
	e.calls.always(Fault{Answer: Refused}, Create)
	if err := errors.Join(e.start(ctx), e.create(ctx, o)); err != nil {
		return "", err
	}
	live, err := e.await(ctx, o, "reconciled", func(o *unstructured.Unstructured) bool { return synced(o) || refused(o) })
	if err != nil {
		return "", err
	}
	if name := meta.GetExternalName(live); name != "" {
		return "", asPreparationError(fmt.Errorf("the object was adopted without a name: %s", describe(live)))
	}
	if err := errors.Join(e.delete(ctx, o), e.awaitGone(ctx, o)); err != nil {
		return "", err
	}
	kept, err := e.exists(ctx, existing)
	if err == nil && (!kept || e.calls.count(Delete) > 0) {
		err = fmt.Errorf("an object without a name was deleted, and the provider has deleted external resource %q, which fits its spec: %s", existing, e.calls)
	}
	return "", err
}

// deleteTwin: an object is deleted whose name is not that of the external resource that fits its spec.
func deleteTwin(ctx context.Context, e *environment) (string, error) {
	o, other := e.manifest(), e.manifest()
	twin, err := e.system.Add(ctx, o)
	if err != nil {
		return "", asPreparationError(err)
	}
	name, err := e.system.Add(ctx, other)
	if err != nil {
		return "", asPreparationError(err)
	}
	o = manifest.WithPolicies(manifest.Named(o, name), "Observe", "Delete")
	if err := errors.Join(e.start(ctx), e.create(ctx, o)); err != nil {
		return "", err
	}
	if _, err := e.await(ctx, o, "Synced with the name of another resource than the one that fits the spec", synced); err != nil {
		return "", asPreparationError(err)
	}
	if err := e.delete(ctx, o); err != nil {
		return "", asPreparationError(err)
	}
	goneErr := e.awaitGoneUnless(ctx, o, func() error {
		kept, err := e.exists(ctx, twin)
		if err == nil && !kept {
			err = &wait.FinalError{Err: fmt.Errorf("the object is named %q, and the provider has deleted external resource %q, which fits its spec", name, twin)}
		}
		return err
	})
	if goneErr != nil {
		return "", goneErr
	}
	left, err := e.exists(ctx, name)
	if err == nil && left {
		err = fmt.Errorf("the object is gone, and external resource %q is left behind", name)
	}
	return "", errors.Join(err, e.checkCreated(ctx, 1))
}
