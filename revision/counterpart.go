package revision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ensureCounterparts makes what a restore would look up once the references of a task are written. A
// task that lacks it waits: a copy that is repointed ahead of its counterpart can't be
// restored.
func (r *pass) ensureCounterparts(ctx context.Context, t *upgrade) error {
	wait := Held
	from, to := t.source, t.replacement
	if t.request.Rollback {
		wait, from, to = Pending, t.replacement, t.source
	}
	name := t.GetName()
	if from != nil {
		name = from.Name
	}
	t.result.Phase = wait // an error leaves it here
	for _, ref := range explicit(r.Of(name)) {
		owner := r.restoreTarget(ref)
		if owner == nil || ref.Counterpart.Revision(to.Name) == to.Name {
			continue
		}
		c := counterpart{ref: ref, owner: owner, of: to}
		if !t.request.Rollback {
			c.old = ref.Counterpart.Revision(name)
		}
		reason, message, err := r.ensureCounterpart(ctx, c)
		if err != nil {
			return err
		}
		switch reason {
		case "":
		case ReasonRestoreConflict:
			t.setStatus(Failed, reason, message)
			return nil
		default:
			t.setStatus(wait, reason, message)
			return nil
		}
	}
	t.setStatus(Created, "", "")
	return nil
}

// counterpart is one revision that a restore looks up.
type counterpart struct {
	ref   Reference
	owner *Referrer                  // what is restored
	of    *appsv1.ControllerRevision // the copy's revision, which it is to equal
	old   string                     // what a restore looks up before an upgrade; empty where there is none
}

func (c counterpart) name() string { return c.ref.Counterpart.Revision(c.of.Name) }

// restore says which one needs the revision.
func (c counterpart) restore() string {
	return fmt.Sprintf("a restore of %s %s onto %s %s", c.ref.Referrer.Kind, c.ref.Referrer.Name, c.owner.Kind, c.owner.Name)
}

// ensureCounterpart makes a counterpart, or finds the one that is there. The reason, if it
// is not empty, says why there is none.
func (r *pass) ensureCounterpart(ctx context.Context, c counterpart) (reason, message string, err error) {
	if n := len(c.name()); n > validation.DNS1123SubdomainMaxLength {
		return ReasonRestoreConflict, fmt.Sprintf(
			"%s would look up a name of %d characters, of which no API server takes more than %d: take a snapshot of the machine when it is upgraded, and delete this one",
			c.restore(), n, validation.DNS1123SubdomainMaxLength), nil
	}
	there, err := r.client.revision(ctx, c.of.Namespace, c.name())
	if err != nil {
		return "", "", err
	}
	if there == nil {
		there, err = r.createCounterpart(ctx, c)
		if apierrors.IsAlreadyExists(err) { // the owner's own upgrade makes it, too
			there, err = r.client.revision(ctx, c.of.Namespace, c.name())
		}
		if err != nil {
			return "", "", fmt.Errorf("create controllerrevision %s/%s: %w", c.of.Namespace, c.name(), err)
		}
	}
	switch {
	case there == nil || there.DeletionTimestamp != nil:
		return ReasonTerminating, fmt.Sprintf("%s looks up controllerrevision %s, which is being deleted", c.restore(), c.name()), nil
	case !r.equal(there, c.of, c.ref.Expected):
		return ReasonRestoreConflict, fmt.Sprintf(
			"%s would replace controllerrevision %s, which exists and holds something else: delete that revision if no object refers to it, or the snapshot", c.restore(), c.name()), nil
	}
	return r.needed(ctx, there)
}

// createCounterpart makes it for the owner, and as the replacement of the owner's own old
// revision, if there is one: where a restore takes the new one, the old one is released.
func (r *pass) createCounterpart(ctx context.Context, c counterpart) (*appsv1.ControllerRevision, error) {
	want := &appsv1.ControllerRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.of.Namespace, Name: c.name(), Labels: c.of.Labels, OwnerReferences: []metav1.OwnerReference{*c.owner.controllerRef()},
		},
		Data: c.of.Data, Revision: c.of.Revision,
	}
	if c.old != "" {
		old, err := r.client.revision(ctx, c.of.Namespace, c.old)
		if err != nil {
			return nil, err
		}
		if old != nil {
			want.Annotations = map[string]string{FromAnnotation: old.Name, FromUIDAnnotation: string(old.UID)}
		}
	}
	return r.client.create(ctx, want)
}

// needed clears since when no object has referred to a counterpart, so that a removal
// that is under way meets a conflict.
func (r *pass) needed(ctx context.Context, there *appsv1.ControllerRevision) (reason, message string, err error) {
	if unreferencedSince(there).IsZero() {
		return "", "", nil
	}
	_, err = r.client.metadata(ctx, there, nil, map[string]*string{UnreferencedAnnotation: nil, ToAnnotation: nil})
	if conflict(err) {
		return ReasonChanged, fmt.Sprintf("controllerrevision %s changed meanwhile", there.Name), nil
	}
	return "", "", err
}

// equal compares two revisions as a restore does: what the objects are in themselves,
// whatever their metadata says.
func (r *pass) equal(a, b *appsv1.ControllerRevision, claim ExpectedType) bool {
	left, errLeft := r.family.Decode(a, claim)
	right, errRight := r.family.Decode(b, claim)
	if errLeft != nil || errRight != nil || left.Version != right.Version {
		return false
	}
	return reflect.DeepEqual(withoutMetadata(left.Object), withoutMetadata(right.Object))
}

func withoutMetadata(object map[string]any) map[string]any {
	object = maps.Clone(object)
	delete(object, "metadata")
	return object
}

// restorable cuts a name for the replacement of a copy's revision, so that the names fit
// that restores compute from it. Those have no hash of their own.
func (r *pass) restorable(t *upgrade, name string) string {
	for _, ref := range explicit(r.Of(t.GetName())) {
		if ref.Counterpart == nil {
			continue
		}
		if excess := len(ref.Counterpart.Revision(name)) - validation.DNS1123SubdomainMaxLength; excess > 0 {
			sum := sha256.Sum256([]byte(name))
			name = WithSuffix(name, hex.EncodeToString(sum[:])[:8], max(len(name)-excess, len(ref.Counterpart.Part)+10))
		}
	}
	return name
}

// lookedUp is what to do about a name that no place has and no revision: one that a
// restore looks up is made of the copy's revision, where that is at the target. Where it
// is not, its own upgrade makes what a restore looks up then.
func (n *namespace) lookedUp(name string, references []Reference) (Item, bool) {
	for _, ref := range references {
		of := n.itemOf(ref.ImpliedBy)
		if of == nil || of.Action != UpToDate && of.Action != Relabel {
			continue
		}
		return Item{
			Namespace: n.Namespace, Name: name, Action: Upgrade, Reason: ReasonNeededForRestore, Target: of.Target, References: referenceStatuses(references, ""),
			Message: fmt.Sprintf("%s %s names %s, so that a restore looks this one up, and it is gone: it is made again", ref.Referrer.Kind, ref.Referrer.Name, of.Name),
		}, true
	}
	return Item{}, false
}

// makeLookedUp makes such a revision.
func (r *pass) makeLookedUp(ctx context.Context, t *upgrade, references []Reference) error {
	for _, ref := range references {
		copied, err := r.client.revision(ctx, t.GetNamespace(), ref.ImpliedBy)
		if err != nil {
			return err
		}
		owner := r.restoreTarget(ref)
		if copied == nil || owner == nil {
			continue
		}
		reason, message, err := r.ensureCounterpart(ctx, counterpart{ref: ref, owner: owner, of: copied})
		switch {
		case err != nil:
			return err
		case reason != "":
			t.setStatus(Analyzing, reason, message)
			return nil
		}
		t.setStatus(Succeeded, ReasonNeededForRestore, "it is made again of "+copied.Name)
		return nil
	}
	t.setStatus(Skipped, ReasonSourceGone, "it is gone, and no object names it")
	return nil
}
