package revision

import (
	"context"
	"fmt"
)

// beginRollback finds the successor that references are to be led away from.
func (r *round) beginRollback(ctx context.Context, t *task) error {
	if t.source == nil && len(r.successors[t.GetName()]) == 0 {
		t.ended(Failed, ReasonSourceGone, "there is no such revision, and none that has taken its place")
		return nil
	}
	if t.source == nil {
		t.ended(Failed, ReasonIrreversible, fmt.Sprintf(
			"the revision is gone, for its retention is over (%s, unless a run was told another): there is nothing to go back to", t.policy.retention()))
		return nil
	}
	name := r.successorOf(t.source)
	if name == "" {
		t.ended(Skipped, "", "it was not upgraded")
		return nil
	}
	successor, err := r.client.revision(ctx, t.GetNamespace(), name)
	if err != nil {
		return err
	}
	if successor == nil {
		t.ended(Failed, ReasonSuccessorGone, name+" took its place, and is gone: have its holders refer to "+t.GetName()+" by hand")
		return nil
	}
	t.succeededBy(successor)
	switch running, unready := busy(r.Of(name), "its successor"); {
	case unready != "":
		t.ended(Pending, ReasonUnready, unready)
	case running != "" && t.policy.OnRunning != Hold:
		t.ended(Pending, ReasonRunning, running+": stop it first, or roll back with Hold")
	default:
		t.ended(Created, "", "")
	}
	return nil
}

// endRollback removes what nobody refers to any more.
func (r *round) endRollback(ctx context.Context, t *task, after *Census) error {
	t.result.Phase = Repointed
	if why := after.unready(t.successor); why != "" {
		t.ended(Repointed, ReasonUnready, why)
		return nil
	}
	var err error
	if t.source, err = r.client.metadata(ctx, t.source, nil, map[string]*string{UnreferencedAnnotation: nil, ToAnnotation: nil}); err != nil {
		return r.changed(t, err)
	}
	if needed := after.Of(t.successor.Name); len(needed) > 0 {
		t.ended(RolledBack, "", fmt.Sprintf("%s %s names %s, so that a restore looks up %s, which is kept",
			needed[0].Holder.Kind, needed[0].Holder.Name, needed[0].ImpliedBy, t.successor.Name))
		return nil
	}
	if err := r.client.remove(ctx, t.successor); err != nil {
		return r.changed(t, err)
	}
	t.ended(RolledBack, "", "")
	return nil
}
