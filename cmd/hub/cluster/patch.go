package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/internal/format"
)

// Patch writes the changes that edit makes to an object. It fails if the object has changed since it was read, and
// sends nothing if edit changes nothing. Fields that the Go type does not have are kept.
func Patch(ctx context.Context, c client.Writer, o client.Object, edit func() error) error {
	if err := format.CheckObject(o.GetName(), o); err != nil {
		return RefuseNewer(err)
	}
	before, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("patch %s: the copy of %T is not an object", o.GetName(), o)
	}
	if err := edit(); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(before, o) {
		return nil
	}
	return c.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// Delete deletes the object that was read, and not a later object of the same name. It returns nil if the object does
// not exist.
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
