package crdmigrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/internal/kube"
)

// operation is one step of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// trim makes the storage version the only stored one. The API server accepts
// any list there without a question, so the patch itself tests that this is
// still the definition the pass was about: whoever stored another version
// meanwhile changed the generation or storedVersions.
func (r *run) trim(ctx context.Context) error {
	operations := []operation{
		{"test", "/metadata/uid", r.crd.UID},
		{"test", "/metadata/generation", r.crd.Generation},
		{"test", "/status/storedVersions", r.crd.Status.StoredVersions},
		{"replace", "/status/storedVersions", []string{kube.StorageVersion(r.crd)}},
	}
	if i := trimmedInVain(r.crd); i >= 0 { // from now on it would be wrong
		failed := fmt.Sprintf("/status/conditions/%d", i)
		operations = append(operations,
			operation{"test", failed + "/type", apiextensionsv1.StorageMigrating},
			operation{"test", failed + "/reason", migrationFailed},
			operation{"remove", failed, nil})
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	err = persist(ctx, func(ctx context.Context) error {
		return r.client.patchCRD(ctx, r.name, types.JSONPatchType, patch, "status")
	})
	switch {
	case apierrors.IsInvalid(err), apierrors.IsNotFound(err), apierrors.IsConflict(err):
		err = r.whyRefused(ctx, err)
	}
	switch {
	case errors.Is(err, ErrChanged):
		return err
	case err != nil:
		return fmt.Errorf("trim status.storedVersions of %s: %w", r.name, err)
	}
	r.trimmed = true
	r.recent.forget(r.crd.UID)
	return nil
}

// whyRefused tells the meanings of an answer apart: a test of the patch failed, or
// admission refused the write, with whatever code it likes. The latter must not
// pass for a change, or the next pass would meet it at once.
func (r *run) whyRefused(ctx context.Context, refused error) error {
	crd, err := r.client.CRD(ctx, r.name)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return errors.Join(refused, fmt.Errorf("look at %s again: %w", r.name, err))
	case err != nil || crd.UID != r.crd.UID || crd.Generation != r.crd.Generation:
	case clean(crd): // an earlier attempt whose answer was lost had been carried out
		return nil
	case slices.Equal(crd.Status.StoredVersions, r.crd.Status.StoredVersions):
		return refused
	}
	return r.changedBeforeTrim(refused)
}

func (r *run) changedBeforeTrim(err error) error {
	return fmt.Errorf("%w: %s is not trimmed: %w", ErrChanged, r.name, err)
}

func (r *run) save(ctx context.Context) error {
	err := persist(ctx, func(ctx context.Context) error {
		return r.options.Journal.Save(ctx, r.name, r.checkpoint)
	})
	if err != nil {
		return err
	}
	r.journaled, r.saved = true, r.client.Clock.Now()
	return nil
}

// saveLast saves after a pass that did not reach its end. It may fail: the
// definition may be gone, and a lost cursor costs requests, nothing else.
func (r *run) saveLast(ctx context.Context, why error) {
	if errors.Is(why, ErrOutOfScope) {
		return // whoever took the label away wants nothing more to be written there
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	if r.journaled || r.checkpoint.ResourceVersion != "" || len(r.checkpoint.Restarts) > 0 {
		_ = r.options.Journal.Save(ctx, r.name, r.checkpoint)
	}
}

// forget removes the checkpoint of a finished migration.
func (r *run) forget(ctx context.Context) error {
	if !r.journaled {
		return nil
	}
	err := persist(ctx, func(ctx context.Context) error {
		return r.options.Journal.Save(ctx, r.name, Checkpoint{})
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the checkpoint of %s: %w", r.name, err)
	}
	r.journaled = false
	return nil
}
