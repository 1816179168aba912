package target

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

const kindCluster = "ManagedCluster"

// own marks an object as created by the migration.
func (h Hub) own(o *unstructured.Unstructured) error {
	text, err := o.MarshalJSON()
	if err != nil {
		return fmt.Errorf("hash %s: %w", o.GetName(), err)
	}
	sum := sha256.Sum256(text)
	cluster.MarkOwned(o, h.UID, hex.EncodeToString(sum[:]))
	return nil
}

// write creates an object, or updates one that the migration has created. If the object is probably new, it creates it
// without reading it first.
func (h Hub) write(ctx context.Context, o *unstructured.Unstructured, isNew bool) (*unstructured.Unstructured, error) {
	if isNew {
		if created, err := h.create(ctx, o); !apierrors.IsAlreadyExists(err) {
			return created, err
		}
	}
	name := cluster.Name(h.Client, o)
	present := &unstructured.Unstructured{}
	present.SetGroupVersionKind(o.GroupVersionKind())
	err := h.Client.Get(ctx, client.ObjectKeyFromObject(o), present)
	desired := o.DeepCopy()
	switch {
	case apierrors.IsNotFound(err):
		return h.create(ctx, o)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case !cluster.IsOwned(present, h.UID) || !cluster.SameProof(present, o):
		return nil, h.exists(present, o)
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

// exists returns the failure of an object that the migration has not created. The source hub sends the identity of a cluster.
func (h Hub) exists(present, o *unstructured.Unstructured) error {
	if present.GetKind() == kindCluster {
		there, err := clusterOf(present)
		if err != nil {
			return err
		}
		if isJoined(there) {
			return h.joined(there, cluster.IdentityIn(o))
		}
	}
	return cluster.Fail(cluster.ReasonExists, "the target hub has %s, which the migration has not created: delete it there, or remove the cluster from the migration", cluster.Name(h.Client, o))
}

func clusterOf(o *unstructured.Unstructured) (*clusterv1.ManagedCluster, error) {
	mc := &clusterv1.ManagedCluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, mc); err != nil {
		return nil, fmt.Errorf("read ManagedCluster %s: %w", o.GetName(), err)
	}
	return mc, nil
}

// fieldManager is the field manager by which the migration creates the objects of clusters. It stays when the migration has released them.
func (h Hub) fieldManager() string { return "godwit-migration-" + h.UID }

func (h Hub) create(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	created := o.DeepCopy()
	if err := h.Client.Create(ctx, created, client.FieldOwner(h.fieldManager())); err != nil {
		return nil, fmt.Errorf("create %s: %w", cluster.Name(h.Client, o), err)
	}
	return created, nil
}
