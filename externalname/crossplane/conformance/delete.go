package conformance

import (
	"context"
	"errors"
	"fmt"
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
	malformed := e.kind.malformed()[0]
	if err := e.rename(ctx, o, malformed); err != nil {
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
