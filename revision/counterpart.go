package revision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/reference"
)

// counterparts creates the revisions that restores need.
type counterparts struct {
	client *cluster.Client
	family decision.Family
}

// ensure makes what a restore would look up once the references of an upgrade are repointed,
// and hands the upgrade to the stage that repoints them. An upgrade that lacks it waits: a
// snapshot whose reference is repointed before its counterpart exists can't be restored.
func (c counterparts) ensure(ctx context.Context, s *snapshot, u *upgrade) error {
	r := u.repointing
	u.result.Phase = r.waiting // an error leaves it here
	for _, ref := range reference.Explicit(s.Of(r.from)) {
		owner := s.RestoreTarget(ref)
		if owner == nil || ref.Counterpart.Revision(r.to) == r.to {
			continue
		}
		one := counterpart{ref: ref, owner: owner, of: r.target}
		if r.annotated {
			one.old = ref.Counterpart.Revision(r.from)
		}
		reason, message, err := c.ensureOne(ctx, one)
		switch {
		case err != nil:
			return err
		case reason == decision.ReasonRestoreConflict:
			u.setStatus(Failed, reason, message)
			return nil
		case reason != nil:
			u.setStatus(r.waiting, reason, message)
			return nil
		}
	}
	u.next = stepRepoint
	u.setStatus(Created, nil, "")
	return nil
}

// counterpart is one revision that a restore needs.
type counterpart struct {
	ref   reference.Reference
	owner *reference.Referrer        // what is restored
	of    *appsv1.ControllerRevision // the snapshot's revision, which it must equal
	old   string                     // the revision that a restore needs before an upgrade; empty if there is none
}

func (c counterpart) name() string { return c.ref.Counterpart.Revision(c.of.Name) }

// restore says which restore needs the revision.
func (c counterpart) restore() string {
	return fmt.Sprintf("a restore of %s %s onto %s %s", c.ref.Referrer.Kind, c.ref.Referrer.Name, c.owner.Kind, c.owner.Name)
}

// ensureOne creates a counterpart, or finds the one that exists. The reason, if it is not
// empty, says why there is none.
func (c counterparts) ensureOne(ctx context.Context, one counterpart) (reason *godwit.Reason, message string, err error) {
	if n := len(one.name()); n > validation.DNS1123SubdomainMaxLength {
		return decision.ReasonRestoreConflict, fmt.Sprintf(
			"%s would look up a name of %d characters, of which no API server takes more than %d: take a snapshot of the machine when it is upgraded, and delete this one",
			one.restore(), n, validation.DNS1123SubdomainMaxLength), nil
	}
	existing, err := c.client.Revision(ctx, one.of.Namespace, one.name())
	if err != nil {
		return nil, "", err
	}
	if existing == nil {
		existing, err = c.create(ctx, one)
		if apierrors.IsAlreadyExists(err) { // the owner's own upgrade creates it, too
			existing, err = c.client.Revision(ctx, one.of.Namespace, one.name())
		}
		if err != nil {
			return nil, "", fmt.Errorf("create controllerrevision %s/%s: %w", one.of.Namespace, one.name(), err)
		}
	}
	switch {
	case existing == nil || existing.DeletionTimestamp != nil:
		return decision.ReasonTerminating, fmt.Sprintf("%s looks up controllerrevision %s, which is being deleted", one.restore(), one.name()), nil
	case !holdSame(c.family, existing, one.of, one.ref.Expected):
		return decision.ReasonRestoreConflict, fmt.Sprintf(
			"%s would replace controllerrevision %s, which exists and holds something else: delete that revision if no object refers to it, or the snapshot", one.restore(), one.name()), nil
	}
	return c.needed(ctx, existing)
}

// create makes a counterpart for the owner, and as the replacement of the owner's own old
// revision, if there is one: where a restore takes the new one, the old one is released.
func (c counterparts) create(ctx context.Context, one counterpart) (*appsv1.ControllerRevision, error) {
	want := &appsv1.ControllerRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: one.of.Namespace, Name: one.name(), Labels: one.of.Labels, OwnerReferences: []metav1.OwnerReference{*one.owner.ControllerRef()},
		},
		Data: one.of.Data, Revision: one.of.Revision,
	}
	if one.old != "" {
		old, err := c.client.Revision(ctx, one.of.Namespace, one.old)
		if err != nil {
			return nil, err
		}
		if old != nil {
			want.Annotations = map[string]string{decision.FromAnnotation: old.Name, decision.FromUIDAnnotation: string(old.UID)}
		}
	}
	return c.client.Create(ctx, want)
}

// needed removes the time since which no object has referred to a counterpart, so that a
// deletion that is under way meets a conflict.
func (c counterparts) needed(ctx context.Context, existing *appsv1.ControllerRevision) (reason *godwit.Reason, message string, err error) {
	if lineage.UnreferencedSince(existing).IsZero() {
		return nil, "", nil
	}
	_, err = c.client.Annotate(ctx, existing, nil, decision.UnreferencedAnnotation, decision.ToAnnotation)
	if apierror.IsConflictOrNotFound(err) {
		return decision.ReasonChanged, fmt.Sprintf("controllerrevision %s changed meanwhile", existing.Name), nil
	}
	return nil, "", err
}

// holdSame reports whether two revisions hold the same object. One that can't be read does not.
func holdSame(f decision.Family, a, b *appsv1.ControllerRevision, expected reference.ExpectedType) bool {
	left, errLeft := f.Decode(a, expected)
	right, errRight := f.Decode(b, expected)
	return errLeft == nil && errRight == nil && f.Equal(left, right)
}

// restorable cuts a name for the replacement of a snapshot's revision, so that the names that
// restores compute from it are not too long. Those have no hash of their own.
func restorable(s *snapshot, u *upgrade, name string) string {
	for _, ref := range reference.Explicit(s.Of(u.GetName())) {
		if ref.Counterpart == nil {
			continue
		}
		if excess := len(ref.Counterpart.Revision(name)) - validation.DNS1123SubdomainMaxLength; excess > 0 {
			sum := sha256.Sum256([]byte(name))
			name = decision.WithSuffix(name, hex.EncodeToString(sum[:])[:8], max(len(name)-excess, len(ref.Counterpart.Part)+10))
		}
	}
	return name
}

// makeLookedUp makes such a revision.
func (c counterparts) makeLookedUp(ctx context.Context, s *snapshot, u *upgrade, references []reference.Reference) error {
	for _, ref := range references {
		snapshotted, err := c.client.Revision(ctx, u.GetNamespace(), ref.ImpliedBy)
		if err != nil {
			return err
		}
		owner := s.RestoreTarget(ref)
		if snapshotted == nil || owner == nil {
			continue
		}
		reason, message, err := c.ensureOne(ctx, counterpart{ref: ref, owner: owner, of: snapshotted})
		switch {
		case err != nil:
			return err
		case reason != nil:
			u.setStatus(Analyzing, reason, message)
			return nil
		}
		u.setStatus(Succeeded, decision.ReasonNeededForRestore, "created again from "+snapshotted.Name)
		return nil
	}
	u.setStatus(Skipped, decision.ReasonSourceGone, "it is gone, and no object names it")
	return nil
}
