package revision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/walk"
)

// MaxScanAge is how old the scan may be by which a revision is removed, counted from the
// end of the scan; an older one is taken again. It is several times what the removal of a
// batch takes without a rate limit, and short enough that few clients name a revision in
// between.
const MaxScanAge = 5 * time.Second

// maxLastReferrers bounds the live reads before one removal. Where more objects name the
// replacement, a scan that is seconds old has all of them.
const maxLastReferrers = 16

// scannedIndex is who refers to what, and when the scan that found it ended.
type scannedIndex struct {
	*ReferenceIndex
	at time.Time
}

// expires is when the index is too old to remove anything by it.
func (x *scannedIndex) expires() time.Time { return x.at.Add(MaxScanAge) }

// remove removes the revisions that are due. Each removal follows a scan that is at most
// MaxScanAge old, and live reads of the owner and the last referrers. Another client may
// name a revision after the last read all the same, so that another scan follows, and what
// it finds is repaired.
func (r *pass) remove(ctx context.Context, x *scannedIndex) error {
	due := those(r.tasks, func(t *upgrade) bool { return t.due })
	for left := due; len(left) > 0; {
		err := r.each(ctx, left, func(ctx context.Context, t *upgrade) error { return r.removeBy(ctx, t, x) })
		if err != nil {
			return err
		}
		left = those(left, func(t *upgrade) bool { return t.due })
		if len(left) > 0 { // the rate limit gives the next turn only when this scan is too old
			if err := walk.Wait(ctx, x.expires().Sub(r.local.Now())); err != nil {
				return err
			}
		}
		if x, err = r.scan(ctx); err != nil {
			return err
		}
	}
	r.removed = append(r.removed, those(due, func(t *upgrade) bool { return t.gone })...)
	return r.repair(ctx, x)
}

// removeBy removes one revision by what an index and the live reads say. It leaves the
// task due where the index is too old.
func (r *pass) removeBy(ctx context.Context, t *upgrade, x *scannedIndex) error {
	if t.due = !r.local.Now().Before(x.expires()); t.due {
		return nil
	}
	if references := x.Of(t.from()); len(references) > 0 {
		return r.stillNamed(ctx, t, references, x)
	}
	if why := x.inUse(t); why != "" {
		t.keepOld(ReasonReferrerNotReady, why)
		return nil
	}
	live, err := r.client.revision(ctx, t.GetNamespace(), t.from())
	switch {
	case err != nil:
		return err
	case live == nil:
		t.removedOld()
		return nil
	case live.UID != t.old().UID || live.ResourceVersion != t.old().ResourceVersion:
		t.keepOld(ReasonChanged, "the revision changed meanwhile")
		return nil
	}
	references, unready, err := r.lastReferrers(ctx, t, x)
	switch {
	case err != nil:
		return err
	case len(references) > 0:
		return r.stillNamed(ctx, t, references, x)
	case unready != "":
		t.keepOld(ReasonReferrerNotReady, unready)
		return nil
	}
	left := x.expires().Sub(r.local.Now())
	if left <= 0 {
		t.due = true
		return nil
	}
	t.copy = live
	switch err := r.client.remove(walk.SendBy(ctx, time.Now().Add(left)), live); {
	case errors.Is(err, walk.ErrTooLate):
		t.due = true
		return nil
	case apierrors.IsNotFound(err), err == nil:
		t.removedOld()
		return nil
	case apierrors.IsConflict(err):
		t.keepOld(ReasonChanged, "the revision changed meanwhile")
		return nil
	default:
		return fmt.Errorf("delete controllerrevision %s/%s: %w", t.GetNamespace(), t.from(), err)
	}
}

// stillNamed keeps a revision for references, those that are implied among them.
func (r *pass) stillNamed(ctx context.Context, t *upgrade, references []Reference, x *scannedIndex) error {
	if named := explicit(references); len(named) > 0 {
		return r.hold(ctx, t, named)
	}
	return r.holdForRestore(ctx, t, references[0], x)
}

// lastReferrers reads the owner of the old revision, and the objects that name the new
// one, live: they are the ones that may name the old one again. It returns the references
// to the old revision, or why it is to be kept for now.
func (r *pass) lastReferrers(ctx context.Context, t *upgrade, x *scannedIndex) (references []Reference, unready string, err error) {
	for _, h := range x.lastReferrers(t) {
		now, all, err := r.client.reread(ctx, r.sources, h)
		if err != nil {
			return nil, "", err
		}
		if now == nil {
			continue
		}
		for _, ref := range all {
			ref.Referrer = now
			if ref.Revision == t.from() && !ref.Fixed {
				references = append(references, ref)
			}
			if implied, is := ref.implied(); is && implied.Revision == t.from() && x.restoreTarget(implied) != nil {
				references = append(references, implied)
			}
		}
		if unready == "" {
			unready = now.notReady()
		}
	}
	return references, unready, nil
}

// lastReferrers are the owner of the old revision and the objects that name the new one.
func (x *scannedIndex) lastReferrers(t *upgrade) []*Referrer {
	var all []*Referrer
	if owner := metav1.GetControllerOfNoCopy(t.old()); owner != nil && x.referrers[owner.UID] != nil {
		all = append(all, x.referrers[owner.UID])
	}
	for _, ref := range x.Of(t.to()) {
		if !ref.Fixed && !slices.Contains(all, ref.Referrer) && len(all) < maxLastReferrers {
			all = append(all, ref.Referrer)
		}
	}
	return all
}

// inUse says why a revision may be about to be read or named again: its owner, or an
// object that named it, is being copied or restored.
func (x *scannedIndex) inUse(t *upgrade) string {
	used := func(uid types.UID, kind, name string) string {
		if h := x.referrers[uid]; h != nil && h.NotReady != "" {
			return h.notReady()
		}
		if by := x.readers[Owner{Kind: kind, Name: name}]; by != nil {
			return by.notReady()
		}
		return ""
	}
	if owner := metav1.GetControllerOfNoCopy(t.old()); owner != nil {
		if why := used(owner.UID, owner.Kind, owner.Name); why != "" {
			return why
		}
	}
	for _, ref := range x.Of(t.to()) {
		if why := used(ref.Referrer.UID, ref.Referrer.Kind, ref.Referrer.Name); why != "" {
			return why
		}
	}
	return ""
}

// repair looks who named a revision while this pass removed it, or since. A reference is
// repointed where it may be written. Where it may not, the revision is made again: the copy
// of it is kept until the end of its batch.
func (r *pass) repair(ctx context.Context, x *scannedIndex) error {
	late := those(r.removed, func(t *upgrade) bool { return t.gone && len(x.Of(t.from())) > 0 })
	if len(late) == 0 {
		return nil
	}
	for _, t := range late {
		t.result.Phase = Created
	}
	again := &pass{Upgrader: r.Upgrader, namespace: r.with(x.ReferenceIndex), tasks: late}
	if err := again.repoint(ctx); err != nil {
		return err
	}
	x, err := r.scan(ctx)
	if err != nil {
		return err
	}
	return r.each(ctx, late, func(ctx context.Context, t *upgrade) error { return r.recreateOld(ctx, t, x) })
}

// those are the tasks of which something is true.
func those(tasks []*upgrade, is func(*upgrade) bool) []*upgrade {
	var all []*upgrade
	for _, t := range tasks {
		if is(t) {
			all = append(all, t)
		}
	}
	return all
}

// with is the same namespace by another scan.
func (n *namespace) with(c *ReferenceIndex) *namespace {
	other := *n
	other.ReferenceIndex = c
	return &other
}

// recreateOld brings back a revision for the references that are left to it.
func (r *pass) recreateOld(ctx context.Context, t *upgrade, x *scannedIndex) error {
	references := x.Of(t.from())
	t.result.References = referenceStatuses(slices.Concat(references, x.Of(t.to())), t.replacement.Name)
	if len(references) == 0 {
		t.removedOld()
		return nil
	}
	if named := explicit(references); len(named) > 0 {
		references = named
	}
	t.setDangling(references)
	if t.copy == nil {
		return nil // another client removed it
	}
	err := walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
		_, err := r.client.create(ctx, recreated(t.copy))
		return err
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.result.Message += fmt.Sprintf("; it could not be made again: %v", err)
		return nil
	}
	t.gone = false
	reason := ReasonReferenced
	if len(explicit(references)) == 0 {
		reason = ReasonNeededForRestore
	}
	t.setStatus(Held, reason, "it was made again: while it was removed, "+whoNames(references))
	return nil
}

// recreated is a revision as it was, for somebody who names it again.
func recreated(r *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	again := r.DeepCopy()
	again.TypeMeta = metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"}
	again.UID, again.ResourceVersion, again.CreationTimestamp, again.ManagedFields = "", "", metav1.Time{}, nil
	delete(again.Annotations, UnreferencedAnnotation)
	return again
}

// setDangling says that references name a revision that is gone, and could not be repointed.
func (t *upgrade) setDangling(references []Reference) {
	why := ""
	running, unready := inUse(references, "it")
	switch {
	case t.repointErr != nil:
		why = ": " + t.repointErr.Error()
	case unready != "":
		why = ", since " + unready
	case running != "":
		why = ", since " + running
	}
	t.setStatus(Failed, ReasonDangling, fmt.Sprintf("it is gone, and %s; the reference could not be repointed to %s%s", whoNames(references), t.to(), why))
}

// whoNames says who refers to a revision, and where.
func whoNames(references []Reference) string {
	first := references[0]
	if first.ImpliedBy != "" {
		return fmt.Sprintf("%s %s names %s, so that a restore looks up %s", first.Referrer.Kind, first.Referrer.Name, first.ImpliedBy, first.Revision)
	}
	message := fmt.Sprintf("%s %s refers to %s at %s", first.Referrer.Kind, first.Referrer.Name, first.Revision, first.Path)
	if len(references) > 1 {
		message += fmt.Sprintf(", and %d more", len(references)-1)
	}
	return message
}

// notReady says why a holder is to be left alone for now.
func (h *Referrer) notReady() string {
	if h.NotReady == "" {
		return ""
	}
	return h.Kind + " " + h.Name + ": " + h.NotReady
}
