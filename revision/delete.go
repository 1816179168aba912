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

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/internal/refindex"
	"github.com/godwit-dev/godwit/revision/internal/usage"
	"github.com/godwit-dev/godwit/revision/reference"
	"github.com/godwit-dev/godwit/walk"
)

// maxIdleScans is how many scans in a row may pass without a deletion. A pass that waited for
// its turn without end would keep all other upgrades of the namespace from being reported.
const maxIdleScans = 3

// maxLastReferrers bounds the live reads before one deletion. Where more objects name the
// target, a scan that is seconds old has all of them.
const maxLastReferrers = 16

// expires is when a snapshot is too old to delete anything by it.
func (s *snapshot) expires() time.Time { return s.taken.Add(MaxScanAge) }

// delete deletes the revisions that are due. Each deletion follows a scan that is at most
// MaxScanAge old, and live reads of the owner and the last referrers. Another client may refer
// to a revision after the last read all the same, so that another scan follows, and what it
// finds is repaired.
func (l *release) delete(ctx context.Context, s *snapshot, due []*upgrade) error {
	left := due
	for idle := 0; len(left) > 0 && idle < maxIdleScans; {
		before := len(left)
		err := l.worker.each(ctx, left, func(ctx context.Context, u *upgrade) error { return l.deleteOne(ctx, s, u) })
		if err != nil {
			return err
		}
		left = dueFor(left, stepDelete)
		if idle++; len(left) < before {
			idle = 0
		}
		if len(left) > 0 { // the rate limit gives the next turn only when this scan is too old
			if err := walk.Wait(ctx, s.expires().Sub(l.local.Now())); err != nil {
				return err
			}
		}
		if s, err = l.scan(ctx, s); err != nil {
			return err
		}
	}
	for _, u := range left {
		u.next = stepDone
		u.keepOld(decision.ReasonRateLimited, fmt.Sprintf(
			"its retention is over, and no deletion could be sent within %s of %d scans, since other requests use the rate limit: a later pass deletes it", MaxScanAge, maxIdleScans))
	}
	l.deletedSoFar = append(l.deletedSoFar, filter(due, func(u *upgrade) bool { return u.deleted })...)
	return l.repair(ctx, s)
}

// deleteOne deletes one revision by what a scan and live reads say. It leaves the upgrade at
// stepDelete where the scan is too old.
func (l *release) deleteOne(ctx context.Context, s *snapshot, u *upgrade) error {
	u.next = stepDelete
	if !l.local.Now().Before(s.expires()) {
		return nil
	}
	u.next = stepDone
	if references := s.Of(u.repointing.from); len(references) > 0 {
		return l.holdEither(ctx, s, u, references)
	}
	if why := s.inUse(u); why != "" {
		u.keepOld(decision.ReasonReferrerNotReady, why)
		return nil
	}
	live, err := l.client.Revision(ctx, u.GetNamespace(), u.repointing.from)
	switch {
	case err != nil:
		return err
	case live == nil:
		u.setDeleted()
		return nil
	case live.UID != u.repointing.old.UID || live.ResourceVersion != u.repointing.old.ResourceVersion:
		u.keepOld(decision.ReasonChanged, changedMessage)
		return nil
	}
	references, notReady, err := l.lastReferences(ctx, s, u)
	switch {
	case err != nil:
		return err
	case len(references) > 0:
		return l.holdEither(ctx, s, u, references)
	case notReady != "":
		u.keepOld(decision.ReasonReferrerNotReady, notReady)
		return nil
	}
	return l.send(ctx, s, u, live)
}

// send deletes a revision, unless its turn comes only when the scan is too old.
func (l *release) send(ctx context.Context, s *snapshot, u *upgrade, live *appsv1.ControllerRevision) error {
	left := s.expires().Sub(l.local.Now())
	if left <= 0 {
		u.next = stepDelete
		return nil
	}
	u.backup = live
	switch err := l.client.Delete(walk.SendBy(ctx, time.Now().Add(left)), live); {
	case errors.Is(err, walk.ErrTooLate):
		u.next = stepDelete
	case apierrors.IsNotFound(err), err == nil:
		u.setDeleted()
	case apierrors.IsConflict(err):
		u.keepOld(decision.ReasonChanged, changedMessage)
	default:
		return fmt.Errorf("delete controllerrevision %s/%s: %w", u.GetNamespace(), u.repointing.from, err)
	}
	return nil
}

// holdEither keeps a revision for references, those that are implied among them.
func (l *release) holdEither(ctx context.Context, s *snapshot, u *upgrade, references []reference.Reference) error {
	if named := reference.Explicit(references); len(named) > 0 {
		return l.hold(ctx, u, named)
	}
	return l.holdForRestore(ctx, s, u, references[0])
}

// lastReferences reads the owner of the old revision, and the objects that name its target,
// live: these are the ones that may name the old one again. It returns the references to the
// old revision, or why it is to be kept for now.
func (l *release) lastReferences(ctx context.Context, s *snapshot, u *upgrade) (references []reference.Reference, notReady string, err error) {
	for _, r := range s.lastReferrers(u) {
		now, all, err := refindex.Reread(ctx, l.client, s.types, r)
		if err != nil {
			return nil, "", err
		}
		if now == nil {
			continue
		}
		for _, ref := range all {
			ref.Referrer = now
			if ref.Revision == u.repointing.from && !ref.Fixed {
				references = append(references, ref)
			}
			if implied, is := ref.Implied(); is && implied.Revision == u.repointing.from && s.RestoreTarget(implied) != nil {
				references = append(references, implied)
			}
		}
		if notReady == "" {
			notReady = now.WhyNotReady()
		}
	}
	return references, notReady, nil
}

// lastReferrers are the owner of the old revision and the objects that name its target.
func (s *snapshot) lastReferrers(u *upgrade) []*reference.Referrer {
	var all []*reference.Referrer
	if owner := metav1.GetControllerOfNoCopy(u.repointing.old); owner != nil && s.Referrer(owner.UID) != nil {
		all = append(all, s.Referrer(owner.UID))
	}
	for _, ref := range s.Of(u.repointing.to) {
		if !ref.Fixed && !slices.Contains(all, ref.Referrer) && len(all) < maxLastReferrers {
			all = append(all, ref.Referrer)
		}
	}
	return all
}

// inUse returns why another client may soon read the old revision, or refer to it again: its owner, or an
// object that named it, is being copied or restored.
func (s *snapshot) inUse(u *upgrade) string {
	if owner := metav1.GetControllerOfNoCopy(u.repointing.old); owner != nil {
		if why := s.WhyNotReady(s.Referrer(owner.UID), reference.Owner{Kind: owner.Kind, Name: owner.Name}); why != "" {
			return why
		}
	}
	for _, ref := range s.Of(u.repointing.to) {
		if why := s.WhyNotReady(s.Referrer(ref.Referrer.UID), reference.Owner{Kind: ref.Referrer.Kind, Name: ref.Referrer.Name}); why != "" {
			return why
		}
	}
	return ""
}

// repair handles references that were created while this pass deleted a revision, or since.
// It repoints a reference if the referrer may be written. Otherwise it creates the revision
// again: the pass keeps the deleted object until the end of its batch. A name that another
// client has given to a new revision, as a restore does, is left to that one.
func (l *release) repair(ctx context.Context, s *snapshot) error {
	late := filter(l.deletedSoFar, func(u *upgrade) bool { return u.deleted && len(s.Of(u.repointing.from)) > 0 })
	if len(late) == 0 {
		return nil
	}
	err := l.worker.each(ctx, late, func(ctx context.Context, u *upgrade) error {
		references := usage.Strongest(s.Of(u.repointing.from))
		u.setDangling(references)
		live, err := l.client.Revision(ctx, u.GetNamespace(), u.repointing.from)
		switch {
		case err != nil:
			return err
		case live == nil:
			u.next = stepRepoint
		default:
			u.setUsedAgain(references, "another client made it again")
		}
		return nil
	})
	if err != nil {
		return err
	}
	late = dueFor(late, stepRepoint)
	if err := l.repoint.Apply(ctx, s, late); err != nil {
		return err
	}
	s, err = l.scan(ctx, s)
	if err != nil {
		return err
	}
	return l.worker.each(ctx, late, func(ctx context.Context, u *upgrade) error { return l.recreateOld(ctx, s, u) })
}

// setUsedAgain reports that a revision which was deleted exists again, and which objects use it.
func (u *upgrade) setUsedAgain(references []reference.Reference, why string) {
	u.deleted = false
	reason := decision.ReasonReferenced
	if references[0].ImpliedBy != "" {
		reason = decision.ReasonNeededForRestore
	}
	u.setStatus(InUse, reason, why+": while it was removed, "+usage.Describe(references))
}

// recreateOld creates a revision again for the references that are left to it.
func (l *release) recreateOld(ctx context.Context, s *snapshot, u *upgrade) error {
	u.next = stepDone
	references := s.Of(u.repointing.from)
	u.result.References = decision.ReferenceStatuses(slices.Concat(references, s.Of(u.repointing.to)), u.result.Replacement)
	if len(references) == 0 {
		u.setDeleted()
		return nil
	}
	references = usage.Strongest(references)
	if u.backup == nil { // another client deleted it
		u.setDangling(references)
		return nil
	}
	err := walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
		_, err := l.client.Create(ctx, lineage.Recreated(u.backup))
		return err
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		u.setDangling(references)
		u.result.Message += fmt.Sprintf("; it could not be made again: %v", err)
		return nil
	}
	u.setUsedAgain(references, "it was made again")
	return nil
}

// Apply ends the upgrades of a batch.
func (l *release) Apply(ctx context.Context, s *snapshot, upgrades []*upgrade) error {
	open := dueFor(upgrades, stepRelease)
	if len(open) == 0 && len(l.deletedSoFar) == 0 {
		return nil
	}
	s, err := l.scan(ctx, s)
	if err != nil {
		return err
	}
	err = l.worker.each(ctx, open, func(ctx context.Context, u *upgrade) error {
		u.next = stepDone
		references := s.Of(u.repointing.from)
		u.result.References = decision.ReferenceStatuses(slices.Concat(references, s.Of(u.repointing.to)), u.result.Replacement)
		switch {
		case len(reference.Explicit(references)) > 0:
			return l.hold(ctx, u, reference.Explicit(references))
		case u.repointing.old == nil:
			u.setDeleted()
			return nil
		case len(references) > 0:
			return l.holdForRestore(ctx, s, u, references[0])
		}
		return l.retain(ctx, u)
	})
	if err != nil {
		return err
	}
	return l.delete(ctx, s, dueFor(upgrades, stepDelete))
}
