package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/wait"
)

// renamed waits until the object has a new name that identifies the resource.
func (e *environment) renamed(ctx context.Context, timeout time.Duration, o *unstructured.Unstructured, before string) error {
	creates := e.calls.count(Create)
	return wait.Until(ctx, timeout, func() (bool, error) {
		if n := e.calls.count(Create) - creates; n > 0 {
			return false, &wait.FinalError{Err: errors.New("the provider has called Create after an update of the key: the name that the update gave is lost")}
		}
		live, err := e.get(ctx, o)
		if err != nil {
			return false, err
		}
		bound, err := e.bound(ctx, live)
		if err == nil && (!bound || meta.GetExternalName(live) == before) {
			err = fmt.Errorf("expected: another name than %q, which identifies the external resource; is: %s", before, describe(live))
		}
		return err == nil, err
	})
}

// updateKeepsTheKey: an update changes a part of the key.
func updateKeepsTheKey(ctx context.Context, e *environment) (string, error) {
	o, before, err := e.createBound(ctx)
	if err != nil {
		return "", err
	}
	if err := e.patch(ctx, o, e.kind.Rename); err != nil {
		return "", asPreparationError(err)
	}
	if err := e.renamed(ctx, e.harness.Timeout, o, before); err != nil {
		return "", err
	}
	return "", e.checkWhileQuiet(ctx, func() error { return e.checkCreated(ctx, 1) })
}

// updateIsApplied: a change of the spec reaches the external resource, and the name stays.
func updateIsApplied(ctx context.Context, e *environment) (string, error) {
	o, before, err := e.createBound(ctx)
	if err != nil {
		return "", err
	}
	if err := e.patch(ctx, o, e.kind.Change); err != nil {
		return "", asPreparationError(err)
	}
	if err := e.awaitCalls(ctx, Update, 1); err != nil {
		return "", err
	}
	err = e.checkWhileQuiet(ctx, func() error {
		live, err := e.get(ctx, o)
		if err == nil && e.kind.nameOf(live) != before {
			err = fmt.Errorf("the external name was %q: %s", before, describe(live))
		}
		return errors.Join(err, e.checkCreated(ctx, 1))
	})
	if err != nil {
		return "", err
	}
	_, _, err = e.awaitBound(ctx, o)
	return "", err
}

// upToDate: nothing differs, after the creation and after an update.
func upToDate(ctx context.Context, e *environment) (string, error) {
	o, _, err := e.createBound(ctx)
	if err != nil {
		return "", err
	}
	if err := e.checkUpdatesEnd(ctx, "creation"); err != nil || e.kind.Change == "" {
		return "", err
	}
	before := e.calls.count(Update)
	if err := e.patch(ctx, o, e.kind.Change); err != nil {
		return "", asPreparationError(err)
	}
	if err := e.awaitCalls(ctx, Update, before+1); err != nil {
		return "", asPreparationError(err)
	}
	return "after a creation and an update", e.checkUpdatesEnd(ctx, "update")
}

// checkUpdatesEnd waits for several observations, in which a provider may complete what it has begun, and returns an
// error if it updates in those that follow.
func (e *environment) checkUpdatesEnd(ctx context.Context, after string) error {
	if err := e.checkWhileQuiet(ctx, func() error { return nil }); err != nil {
		return err
	}
	before := e.calls.count(Update)
	return e.checkWhileQuiet(ctx, func() error {
		if n := e.calls.count(Update) - before; n > 0 {
			return fmt.Errorf("the provider has called Update %d times after the last %s, although the spec has not changed: Diff compares in another way than the external system", n, after)
		}
		return nil
	})
}

// editedName: a user edits the name while the external resource exists.
func editedName(ctx context.Context, e *environment) (string, error) {
	o, name, err := e.createBound(ctx)
	if err != nil {
		return "", err
	}
	if err := e.rename(ctx, o, e.kind.Unknown); err != nil {
		return "", asPreparationError(err)
	}
	_, err = e.awaitRefused(ctx, o, "its external name was edited, and the resource with the old name exists")
	err = errors.Join(err, e.checkWhileQuiet(ctx, func() error { return e.checkCreated(ctx, 1) }))
	if err != nil {
		return "", err
	}
	if err := e.rename(ctx, o, name); err != nil {
		return "", asPreparationError(err)
	}
	if _, _, err := e.awaitBound(ctx, o); err != nil {
		return "", fmt.Errorf("after the name is restored: %w", err)
	}
	return "", e.checkCreated(ctx, 1)
}

// restored: a backup without status is applied to a cluster that has lost the object.
func restored(ctx context.Context, e *environment) (string, error) {
	o, name, err := e.createBound(ctx)
	if err != nil {
		return "", err
	}
	e.stop()
	if err := errors.Join(e.release(ctx, o), e.awaitGone(ctx, o)); err != nil {
		return "", asPreparationError(err)
	}
	backup := o.DeepCopy()
	unstructured.RemoveNestedField(backup.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "finalizers"} {
		unstructured.RemoveNestedField(backup.Object, "metadata", field)
	}
	if err := errors.Join(e.create(ctx, backup), e.start(ctx)); err != nil {
		return "", err
	}
	live, now, err := e.awaitBound(ctx, backup)
	if err == nil && now != name {
		err = fmt.Errorf("the external name was %q: %s", name, describe(live))
	}
	return "", errors.Join(err, e.checkCreated(ctx, 1))
}
