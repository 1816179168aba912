package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/manifest"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/wait"
)

// emptyNameAdoptsNothing: an external resource fits the spec of an object that has no name.
func emptyNameAdoptsNothing(ctx context.Context, e *environment) (string, error) {
	o := e.manifest()
	existing, err := e.system.Add(ctx, o)
	if err != nil {
		return "", asPreparationError(err)
	}
	if err := errors.Join(e.start(ctx), e.create(ctx, o)); err != nil {
		return "", err
	}
	if _, err := e.await(ctx, o, "reconciled", func(o *unstructured.Unstructured) bool { return synced(o) || refused(o) }); err != nil {
		return "", err
	}
	return "", e.checkWhileQuiet(ctx, func() error {
		live, err := e.get(ctx, o)
		if err != nil {
			return err
		}
		if meta.GetExternalName(live) == existing {
			return fmt.Errorf("external resource %q was adopted, although the user has not named it: %s", existing, describe(live))
		}
		return e.calls.checkNone(Update, Delete)
	})
}

// malformedNamesAreRefused: an object for each malformed name.
func malformedNamesAreRefused(ctx context.Context, e *environment) (string, error) {
	if err := e.start(ctx); err != nil {
		return "", err
	}
	var objects []*unstructured.Unstructured
	atAdmission := 0
	for _, name := range e.kind.malformed() {
		o := manifest.Named(e.manifest(), name)
		err := e.create(ctx, o)
		switch {
		case kerrors.IsInvalid(err) || kerrors.IsForbidden(err):
			atAdmission++
		case err != nil:
			return "", err
		default:
			objects = append(objects, o)
		}
	}
	var accepted []string
	for _, o := range objects {
		live, err := e.await(ctx, o, "reconciled", func(o *unstructured.Unstructured) bool { return synced(o) || refused(o) })
		if err != nil {
			return "", err
		}
		if !refused(live) || meta.GetExternalName(live) != meta.GetExternalName(o) {
			accepted = append(accepted, fmt.Sprintf("%q", clip(meta.GetExternalName(o))))
		}
	}
	err := e.checkWhileQuiet(ctx, func() error { return e.calls.checkNone() })
	if len(accepted) > 0 {
		err = errors.Join(fmt.Errorf("accepted: %s", strings.Join(accepted, ", ")), err)
	}
	return fmt.Sprintf("%d names, of which admission refuses %d", atAdmission+len(objects), atAdmission), err
}

// nameIdentifies: one external resource fits the spec, and another one has the name.
func nameIdentifies(ctx context.Context, e *environment) (string, error) {
	o, other := e.manifest(), e.manifest()
	fits, err := e.system.Add(ctx, o)
	if err != nil {
		return "", asPreparationError(err)
	}
	name, err := e.system.Add(ctx, other)
	if err != nil {
		return "", asPreparationError(err)
	}
	o = manifest.WithPolicies(manifest.Named(o, name), "Observe")
	if err := errors.Join(e.start(ctx), e.create(ctx, o)); err != nil {
		return "", err
	}
	if _, err := e.await(ctx, o, "Synced with the name of another resource than the one that fits the spec", synced); err != nil {
		return "", err
	}
	if err := e.system.Remove(ctx, name); err != nil {
		return "", asPreparationError(err)
	}
	if _, err := e.awaitRefused(ctx, o, fmt.Sprintf("the external resource with its name is gone, and %q only fits the spec", fits)); err != nil {
		return "", err
	}
	return "", e.checkCreated(ctx, 1)
}

// severalMatches: a lookup by the spec finds two external resources.
func severalMatches(ctx context.Context, e *environment) (string, error) {
	o := e.manifest()
	if err := e.system.AddTwins(ctx, o); err != nil {
		return "", asPreparationError(err)
	}
	o = manifest.Named(o, e.kind.LookupName(o))
	if err := errors.Join(e.start(ctx), e.create(ctx, o)); err != nil {
		return "", err
	}
	live, err := e.await(ctx, o, "reconciled", func(o *unstructured.Unstructured) bool { return synced(o) || refused(o) })
	if err != nil {
		return "", err
	}
	if synced(live) {
		return "", fmt.Errorf("two external resources match, and no error says so: %s", describe(live))
	}
	return "", e.checkWhileQuiet(ctx, func() error {
		return errors.Join(e.calls.checkNone(Create, Update, Delete), e.checkCreated(ctx, 2))
	})
}

// missingParent: what the external resource is part of can't be read.
func missingParent(ctx context.Context, e *environment) (string, error) {
	o := e.manifest()
	name, err := e.system.Add(ctx, o)
	if err != nil {
		return "", asPreparationError(err)
	}
	o = manifest.Named(o, name)
	if err := errors.Join(e.start(ctx), e.create(ctx, o)); err != nil {
		return "", err
	}
	if _, _, err := e.awaitBound(ctx, o); err != nil {
		return "", asPreparationError(err)
	}
	restore, err := e.system.HideParent(ctx, name)
	if err != nil {
		return "", asPreparationError(err)
	}
	_, err = e.awaitRefused(ctx, o, "the parent of the external resource is missing")
	err = errors.Join(err, e.checkWhileQuiet(ctx, func() error { return e.calls.checkNone(Create, Delete) }))
	if restoreErr := restore(ctx); restoreErr != nil {
		return "", errors.Join(err, asPreparationError(restoreErr))
	}
	if err != nil {
		return "", err
	}
	if _, _, err := e.awaitBound(ctx, o); err != nil {
		return "", fmt.Errorf("after the parent is back: %w", err)
	}
	return "", e.checkCreated(ctx, 1)
}

// hardKeys: what is created can be observed and deleted, or is refused before it is created.
func hardKeys(ctx context.Context, e *environment) (string, error) {
	if err := e.start(ctx); err != nil {
		return "", err
	}
	var notes []string
	for i, patch := range e.kind.HardKeys {
		o := e.manifest()
		if err := manifest.MergeInto(o, patch); err != nil {
			return "", asPreparationError(err)
		}
		if err := e.create(ctx, o); err != nil {
			notes = append(notes, fmt.Sprintf("%d refused by the API server", i+1))
			continue
		}
		note, err := e.hardKey(ctx, o)
		if err != nil {
			return "", fmt.Errorf("spec %s: %w", patch, err)
		}
		notes = append(notes, fmt.Sprintf("%d %s", i+1, note))
	}
	return strings.Join(notes, ", "), e.checkCreated(ctx, 0)
}

// refusals is the number of consecutive reads that must show an object as refused: an object that is only late is
// refused in fewer.
const refusals = 20

func (e *environment) hardKey(ctx context.Context, o *unstructured.Unstructured) (string, error) {
	creates := e.calls.count(Create)
	seen, bound := 0, false
	err := wait.Until(ctx, e.harness.Timeout, func() (bool, error) {
		live, err := e.get(ctx, o)
		if err != nil {
			return false, err
		}
		if bound, err = e.bound(ctx, live); err != nil || bound {
			return bound, err
		}
		if refused(live) {
			seen++
		}
		if seen >= refusals {
			return true, nil
		}
		return false, fmt.Errorf("expected: created or refused; is: %s", describe(live))
	})
	if err != nil {
		return "", err
	}
	if !bound {
		live, err := e.get(ctx, o)
		if err != nil {
			return "", err
		}
		if e.calls.count(Create) > creates {
			return "", fmt.Errorf("an external resource was created, and can't be observed: %s", describe(live))
		}
		return "refused", errors.Join(e.delete(ctx, o), e.awaitGone(ctx, o))
	}
	if err := e.delete(ctx, o); err != nil {
		return "", err
	}
	return "created and deleted", e.awaitGone(ctx, o)
}
