package revision

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// settle looks once more who refers to what, and gives up the sources that nobody
// has referred to for long enough. Between a reference that is found gone and the
// source that goes there are always two looks and the retention.
func (r *round) settle(ctx context.Context) error {
	var open []*task
	for _, t := range r.tasks {
		if t.underWay() {
			open = append(open, t)
		}
	}
	if len(open) == 0 {
		return nil
	}
	after, err := r.references(ctx)
	if err != nil {
		return err
	}
	return r.visit(ctx, open, func(ctx context.Context, t *task) error {
		from, to := t.names()
		references := after.Of(from)
		needed := len(direct(references)) < len(references)
		t.result.Referrers = places(slices.Concat(references, after.Of(to)), t.successor.Name)
		switch {
		case len(direct(references)) > 0:
			return r.hold(ctx, t, direct(references))
		case t.wish.Rollback:
			return r.endRollback(ctx, t, after)
		case t.source == nil:
			t.ended(Succeeded, "", "")
			return nil
		case needed:
			return r.holdForRestore(ctx, t, references[0], after)
		}
		return r.release(ctx, t, after)
	})
}

// references scans the namespace again, for references alone: in all resources that
// the cluster has by now, since what nobody looks into may hold one.
func (r *round) references(ctx context.Context) (*Census, error) {
	sources, err := r.client.sources(ctx, r.family.Describe().Referrers)
	if err != nil {
		return nil, err
	}
	for census, err := range r.client.censuses(ctx, scan{sources: sources, namespace: r.Namespace}, nil) {
		return census, err
	}
	return newCensus(r.Namespace), nil
}

// hold keeps a source that somebody refers to, and forgets that nobody did.
func (r *round) hold(ctx context.Context, t *task, references []Reference) error {
	first := references[0]
	message := fmt.Sprintf("%s %s refers to %s at %s", first.Holder.Kind, first.Holder.Name, first.Revision, first.Path)
	if len(references) > 1 {
		message += fmt.Sprintf(", and %d more", len(references)-1)
	}
	if first.Fixed {
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
	if t.source == nil || t.wish.Rollback {
		return nil
	}
	if err := r.referredAgain(ctx, t); !moved(err) {
		return err
	}
	return nil // the next round sees it
}

// holdForRestore keeps a source that no object names, and that a restore looks up.
func (r *round) holdForRestore(ctx context.Context, t *task, ref Reference, after *Census) error {
	t.ended(Held, ReasonNeededForRestore, fmt.Sprintf("%s %s names %s at %s, so that a restore of it onto %s %s looks up %s",
		ref.Holder.Kind, ref.Holder.Name, ref.ImpliedBy, ref.Path, after.restored(ref).Kind, after.restored(ref).Name, ref.Revision))
	if err := r.referredAgain(ctx, t); !moved(err) {
		return err
	}
	return nil // the next pass sees it
}

// release notes that nobody refers to a source and, when that has been so for
// long enough, removes it: unless its owner is being copied or restored, which may
// be about to refer to it.
func (r *round) release(ctx context.Context, t *task, after *Census) error {
	now := r.options.Clock.Now()
	since := unreferencedSince(t.source)
	t.result.Phase = Repointed
	if since.IsZero() {
		since = now
		noted := now.UTC().Format(time.RFC3339)
		var err error
		if t.source, err = r.client.metadata(ctx, t.source, nil, map[string]*string{ToAnnotation: &t.successor.Name, UnreferencedAnnotation: &noted}); err != nil {
			return r.changed(t, err)
		}
	}
	t.result.Phase, t.result.Until = Retained, since.Add(t.policy.retention())
	unready := after.unready(t.source)
	switch {
	case t.policy.Retain:
		t.result.Until = time.Time{}
		t.ended(Retained, ReasonKept, "nobody refers to it, and it is kept for good")
	case now.Before(t.result.Until):
		t.ended(Retained, ReasonRetained, "nobody refers to it; it is kept for "+t.policy.retention().String())
	case unready != "":
		t.ended(Retained, ReasonUnready, unready)
	default:
		if err := r.client.remove(ctx, t.source); err != nil {
			return r.changed(t, err)
		}
		t.ended(Succeeded, "", "")
	}
	return nil
}

// unready says why the owner of a revision may be about to refer to it: it is being
// copied or restored.
func (c *Census) unready(r *appsv1.ControllerRevision) string {
	owner := metav1.GetControllerOfNoCopy(r)
	if owner == nil || c.holders[owner.UID] == nil {
		return ""
	}
	return c.holders[owner.UID].Unready
}

// changed leaves a revision that somebody else wrote to the next round.
func (r *round) changed(t *task, err error) error {
	if !moved(err) {
		return fmt.Errorf("write controllerrevision %s/%s: %w", t.GetNamespace(), t.GetName(), err)
	}
	t.ended(t.result.Phase, ReasonChanged, "the revision changed meanwhile")
	return nil
}
