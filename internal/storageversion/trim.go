package storageversion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
)

// trim makes the storage version the only stored one.
func (r *run) trim(ctx context.Context) error {
	crd := r.epoch().crd
	patch, err := json.Marshal(request.TrimOperations(crd))
	if err != nil {
		return err
	}
	err = request.Retry(ctx, func(ctx context.Context) error {
		return r.client.PatchCRD(ctx, r.name, types.JSONPatchType, patch, "status")
	})
	switch {
	case apierrors.IsInvalid(err), apierrors.IsNotFound(err), apierrors.IsConflict(err):
		err = r.whyRefused(ctx, err)
	}
	switch {
	case errors.Is(err, decision.ErrChanged):
		return err
	case err != nil:
		return fmt.Errorf("trim status.storedVersions of %s: %w", r.name, err)
	}
	r.trimmed = true
	r.options.Recent.Forget(crd.UID)
	return nil
}

// whyRefused finds out what the answer means: a test of the patch failed, or admission
// refused the write, which it can do with any code. A refusal by admission must not be
// reported as a change of the CRD, or the next pass would meet it at once.
func (r *run) whyRefused(ctx context.Context, refused error) error {
	now := r.epoch().crd
	crd, err := r.client.CRD(ctx, r.name)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return errors.Join(refused, fmt.Errorf("read %s again: %w", r.name, err))
	case err != nil || crd.UID != now.UID || crd.Generation != now.Generation:
	case kube.Trimmed(crd): // an earlier attempt whose answer was lost had been carried out
		return nil
	case slices.Equal(crd.Status.StoredVersions, now.Status.StoredVersions):
		return refused
	}
	return r.changedBeforeTrim(refused)
}

func (r *run) changedBeforeTrim(err error) error {
	return fmt.Errorf("%w: %s is not trimmed: %w", decision.ErrChanged, r.name, err)
}
