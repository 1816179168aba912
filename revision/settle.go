package revision

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// settle scans once more, and removes the revisions that no object has named for long
// enough. Between a reference that is found gone and the removal there are always two
// scans and the retention.
func (r *pass) settle(ctx context.Context) error {
	open := those(r.tasks, (*upgrade).repointing)
	if len(open) == 0 && len(r.removed) == 0 {
		return nil
	}
	x, err := r.scan(ctx)
	if err != nil {
		return err
	}
	err = r.each(ctx, open, func(ctx context.Context, t *upgrade) error {
		references := x.Of(t.from())
		t.result.References = referenceStatuses(slices.Concat(references, x.Of(t.to())), t.replacement.Name)
		switch {
		case len(explicit(references)) > 0:
			return r.hold(ctx, t, explicit(references))
		case t.old() == nil:
			t.removedOld()
			return nil
		case len(references) > 0:
			return r.holdForRestore(ctx, t, references[0], x)
		}
		return r.retain(ctx, t)
	})
	if err != nil {
		return err
	}
	return r.remove(ctx, x)
}

// scan reads the namespace again, for references alone: in all resources that the cluster
// has by now, since what is not read may hold one.
func (r *pass) scan(ctx context.Context) (*scannedIndex, error) {
	sources, err := r.client.sources(ctx, r.family.Describe())
	if err != nil {
		return nil, err
	}
	found := newReferenceIndex(r.Namespace)
	for census, err := range r.client.indexes(ctx, scan{sources: sources, namespace: r.Namespace}, nil) {
		if err != nil {
			return nil, err
		}
		found = census
	}
	return &scannedIndex{ReferenceIndex: found, at: r.local.Now()}, nil
}

// hold keeps a revision that is referred to, and drops since when it was not.
func (r *pass) hold(ctx context.Context, t *upgrade, references []Reference) error {
	if t.old() == nil {
		t.setDangling(references)
		return nil
	}
	message := whoNames(references)
	if references[0].Fixed {
		message += ": it can't be written, and goes when what runs by it ends"
	}
	switch {
	case refusal(t.repointErr):
		t.setStatus(Failed, ReasonRefused, t.repointErr.Error())
	case t.repointErr != nil:
		t.setStatus(Held, ReasonChanged, message+"; other clients keep changing it: "+t.repointErr.Error())
	default:
		t.setStatus(Held, ReasonReferenced, message)
	}
	if err := r.clearUnreferenced(ctx, t); !conflict(err) {
		return err
	}
	return nil // the next round sees it
}

// holdForRestore keeps a revision that no object names, and that a restore looks up.
func (r *pass) holdForRestore(ctx context.Context, t *upgrade, ref Reference, x *scannedIndex) error {
	if t.request.Rollback {
		t.setStatus(RolledBack, "", fmt.Sprintf("%s %s names %s, so that a restore looks up %s, which is kept",
			ref.Referrer.Kind, ref.Referrer.Name, ref.ImpliedBy, t.from()))
	} else {
		t.setStatus(Held, ReasonNeededForRestore, fmt.Sprintf("%s %s names %s at %s, so that a restore of it onto %s %s looks up %s",
			ref.Referrer.Kind, ref.Referrer.Name, ref.ImpliedBy, ref.Path, x.restoreTarget(ref).Kind, x.restoreTarget(ref).Name, ref.Revision))
	}
	if err := r.clearUnreferenced(ctx, t); !conflict(err) {
		return err
	}
	return nil // the next pass sees it
}

// retain notes that a revision is not referred to and, when that has been so for long
// enough, has it removed.
func (r *pass) retain(ctx context.Context, t *upgrade) error {
	t.result.Phase = Repointed
	if t.request.Rollback {
		by, err := r.neededBy(ctx, t)
		if err != nil {
			return err
		}
		if by != "" {
			t.keepOld(ReasonKept, t.from()+" is kept: "+by+" was upgraded to it as well")
			return nil
		}
	}
	if unreferencedSince(t.old()).IsZero() {
		if err := r.noteUnreferenced(ctx, t); err != nil {
			return r.changed(t, err)
		}
	}
	now := r.clock.Now()
	t.result.Until = unreferencedSince(t.old()).Add(t.policy.retention())
	switch {
	case t.policy.Retain:
		t.result.Until = time.Time{}
		t.keepOld(ReasonKept, "nobody refers to "+t.oldWord()+", and it is kept for good")
	case now.Before(t.result.Until):
		t.keepOld(ReasonRetained, "nobody refers to "+t.oldWord()+"; it is kept for "+t.policy.retention().String())
	default:
		t.keepOld("", "")
		t.due = true
	}
	return nil
}

// changed leaves a revision that somebody else wrote to the next round.
func (r *pass) changed(t *upgrade, err error) error {
	if !conflict(err) {
		return fmt.Errorf("write controllerrevision %s/%s: %w", t.GetNamespace(), t.GetName(), err)
	}
	t.setStatus(t.result.Phase, ReasonChanged, "the revision changed meanwhile")
	return nil
}
