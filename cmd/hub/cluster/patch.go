package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/internal/format"
)

// Patch writes what edit changes in an object, if the object still is what was read. It
// sends nothing when nothing changes. A field that the type does not have stays as it is.
func Patch(ctx context.Context, c client.Writer, o client.Object, edit func() error) error {
	if err := format.CheckObject(o.GetName(), o); err != nil {
		return RefuseNewer(err)
	}
	before, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("patch %s: the copy of %T is no object", o.GetName(), o)
	}
	if err := edit(); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(before, o) {
		return nil
	}
	return c.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// Delete deletes the object that was read, and no other of its name. An object that is gone
// is no error.
func Delete(ctx context.Context, c client.Writer, o client.Object) error {
	if !o.GetDeletionTimestamp().IsZero() {
		return nil
	}
	if err := format.CheckObject(o.GetName(), o); err != nil {
		return RefuseNewer(err)
	}
	uid := o.GetUID()
	return client.IgnoreNotFound(c.Delete(ctx, o, client.Preconditions{UID: &uid}))
}
