package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/internal/format"
)

// labelShared marks an object that migrations have created and share.
const labelShared = "godwit.dev/shared-by-migrations"

// Share creates an object that several migrations need, or adds the migration to its owners and calls update. It fails
// if an object of this name exists that Godwit did not create.
func Share(ctx context.Context, c client.Client, o client.Object, migration string, update func() error) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		if err := update(); err != nil {
			return err
		}
		o.SetResourceVersion("")
		o.SetLabels(map[string]string{labelShared: "true"})
		o.SetAnnotations(map[string]string{annotationOwners: migration})
		return c.Create(ctx, o)
	}
	if err != nil {
		return err
	}
	if !IsShared(o) {
		return Fail(ReasonForeignObject, "%s exists and does not belong to Godwit: rename or delete it", name(c, o))
	}
	if !o.GetDeletionTimestamp().IsZero() {
		return fmt.Errorf("%s is being deleted", name(c, o))
	}
	return Patch(ctx, c, o, func() error {
		if err := update(); err != nil {
			return err
		}
		setOwners(o, append(Owners(o), migration))
		return nil
	})
}

// SharesWithOthers reports whether the migration and at least one more need an object.
func SharesWithOthers(o client.Object, migration string) bool {
	all := Owners(o)
	return len(all) > 1 && slices.Contains(all, migration)
}

// Unshare removes the migration from the owners of a shared object, and deletes the object with its last owner. It does
// nothing if the object does not exist or the migration is not an owner.
func Unshare(ctx context.Context, c client.Client, o client.Object, migration string) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return client.IgnoreNotFound(err)
	}
	all := Owners(o)
	if !IsShared(o) || !slices.Contains(all, migration) {
		return nil
	}
	if len(all) > 1 {
		return Patch(ctx, c, o, func() error {
			setOwners(o, slices.DeleteFunc(all, func(uid string) bool { return uid == migration }))
			return nil
		})
	}
	if err := format.CheckObject(name(c, o), o); err != nil {
		return RefuseNewer(err)
	}
	// The precondition on the version fails if another migration shares the object at the same moment.
	uid, version := o.GetUID(), o.GetResourceVersion()
	return client.IgnoreNotFound(c.Delete(ctx, o, client.Preconditions{UID: &uid, ResourceVersion: &version}))
}

// IsShared reports whether migrations have created an object to share it.
func IsShared(o client.Object) bool { return o.GetLabels()[labelShared] != "" }

// Owners returns the UIDs of the migrations that share an object.
func Owners(o client.Object) []string {
	return slices.DeleteFunc(strings.Split(o.GetAnnotations()[annotationOwners], ","), func(uid string) bool { return uid == "" })
}

func setOwners(o client.Object, uids []string) {
	slices.Sort(uids)
	annotations := clone(o)
	annotations[annotationOwners] = strings.Join(slices.Compact(uids), ",")
	o.SetAnnotations(annotations)
}
