package target

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/hub/cluster"
)

// own makes an object one that the migration creates.
func (h Hub) own(o *unstructured.Unstructured) error {
	text, err := o.MarshalJSON()
	if err != nil {
		return fmt.Errorf("hash %s: %w", o.GetName(), err)
	}
	sum := sha256.Sum256(text)
	cluster.Own(o, h.UID, hex.EncodeToString(sum[:]))
	return nil
}

// write creates an object, or makes it what is desired if the migration has created it.
func (h Hub) write(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	name := cluster.Name(h.Client, o)
	present := &unstructured.Unstructured{}
	present.SetGroupVersionKind(o.GroupVersionKind())
	err := h.Client.Get(ctx, client.ObjectKeyFromObject(o), present)
	desired := o.DeepCopy()
	switch {
	case apierrors.IsNotFound(err):
		if err := h.Client.Create(ctx, desired); err != nil {
			return nil, fmt.Errorf("create %s: %w", name, err)
		}
		return desired, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case !cluster.IsOwned(present, h.UID):
		return nil, cluster.Fail(cluster.ReasonExists, "the target hub has %s, which the migration has not created: delete it there, or remove the cluster from the migration", name)
	case !present.GetDeletionTimestamp().IsZero():
		return nil, fmt.Errorf("%s is being deleted", name)
	case cluster.SameContent(present, desired):
		return present, nil
	}
	desired.SetResourceVersion(present.GetResourceVersion())
	desired.SetUID(present.GetUID())
	desired.SetFinalizers(present.GetFinalizers())
	desired.SetOwnerReferences(present.GetOwnerReferences())
	if err := h.Client.Update(ctx, desired); err != nil {
		return nil, fmt.Errorf("update %s: %w", name, err)
	}
	return desired, nil
}
