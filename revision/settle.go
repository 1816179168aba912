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
func (r *round) settle(ctx context.Context) error {
	open := those(r.tasks, (*task).underWay)
	if len(open) == 0 && len(r.removed) == 0 {
		return nil
	}
	x, err := r.scan(ctx)
	if err != nil {
		return err
	}
	err = r.visit(ctx, open, func(ctx context.Context, t *task) error {
		references := x.Of(t.from())
		t.result.Referrers = places(slices.Concat(references, x.Of(t.to())), t.successor.Name)
		switch {
		case len(direct(references)) > 0:
			return r.hold(ctx, t, direct(references))
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
func (r *round) scan(ctx context.Context) (*index, error) {
	sources, err := r.client.sources(ctx, r.family.Describe())
	if err != nil {
		return nil, err
	}
	found := newCensus(r.Namespace)
	for census, err := range r.client.censuses(ctx, scan{sources: sources, namespace: r.Namespace}, nil) {
		if err != nil {
			return nil, err
		}
		found = census
	}
	return &index{Census: found, at: r.local.Now()}, nil
}

// hold keeps a revision that is referred to, and drops since when it was not.
func (r *round) hold(ctx context.Context, t *task, references []Reference) error {
	if t.old() == nil {
		t.dangle(references)
		return nil
	}
	message := whoNames(references)
	if references[0].Fixed {
		message += ": it can't be written, and goes when what runs by it ends"
	}
	switch {
	case refusal(t.notLed):
		t.ended(Failed, ReasonRefused, t.notLed.Error())
	case t.notLed != nil:
		t.ended(Held, ReasonChanged, message+"; other clients keep changing it: "+t.notLed.Error())
	default:
		t.ended(Held, ReasonReferenced, message)
	}
	if err := r.referredAgain(ctx, t); !moved(err) {
		return err
	}
	return nil // the next round sees it
}

// holdForRestore keeps a revision that no object names, and that a restore looks up.
func (r *round) holdForRestore(ctx context.Context, t *task, ref Reference, x *index) error {
	if t.wish.Rollback {
		t.ended(RolledBack, "", fmt.Sprintf("%s %s names %s, so that a restore looks up %s, which is kept",
			ref.Holder.Kind, ref.Holder.Name, ref.ImpliedBy, t.from()))
	} else {
		t.ended(Held, ReasonNeededForRestore, fmt.Sprintf("%s %s names %s at %s, so that a restore of it onto %s %s looks up %s",
			ref.Holder.Kind, ref.Holder.Name, ref.ImpliedBy, ref.Path, x.restored(ref).Kind, x.restored(ref).Name, ref.Revision))
	}
	if err := r.referredAgain(ctx, t); !moved(err) {
		return err
	}
	return nil // the next pass sees it
}

// retain notes that a revision is not referred to and, when that has been so for long
// enough, has it removed.
func (r *round) retain(ctx context.Context, t *task) error {
	t.result.Phase = Repointed
	if t.wish.Rollback {
		by, err := r.neededBy(ctx, t)
		if err != nil {
			return err
		}
		if by != "" {
			t.keep(ReasonKept, t.from()+" is kept: "+by+" was upgraded to it as well")
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
		t.keep(ReasonKept, "nobody refers to "+t.oldWord()+", and it is kept for good")
	case now.Before(t.result.Until):
		t.keep(ReasonRetained, "nobody refers to "+t.oldWord()+"; it is kept for "+t.policy.retention().String())
	default:
		t.keep("", "")
		t.due = true
	}
	return nil
}

// changed leaves a revision that somebody else wrote to the next round.
func (r *round) changed(t *task, err error) error {
	if !moved(err) {
		return fmt.Errorf("write controllerrevision %s/%s: %w", t.GetNamespace(), t.GetName(), err)
	}
	t.ended(t.result.Phase, ReasonChanged, "the revision changed meanwhile")
	return nil
}
