package fleet

import (
	"context"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/quote"
)

// Rollback restores the name before the last renaming, byte for byte, of each managed resource in scope that has a
// journal, and removes the journal. It ends the pause of an interrupted renaming, and keeps a name that another client
// has changed since. Rollback works without the provider.
func (f *Fleet) Rollback(ctx context.Context) (Report, error) {
	var r Report
	err := f.scan(ctx, func(m managed.Resource) error {
		if _, has := m.GetAnnotations()[AnnotationJournal]; has {
			r.Results = append(r.Results, Result{Item: itemOf(m)})
		}
		return nil
	})
	if err != nil {
		return Report{}, err
	}
	return r, f.writeEach(ctx, r.Results, func(_ *Result, s situation) (decision, *managed.Changes) { return decideRollback(s) })
}

// itemOf returns the item of a managed resource, with the name before its last renaming as the proposed one.
func itemOf(m managed.Resource) Item {
	i := Item{Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID()}
	if name := m.ExternalName(); name != nil {
		i.Current = *name
	}
	if j, err := readJournal(m); err == nil && j != nil && j.From != nil {
		i.Proposed = *j.From
	}
	return i
}

// writeEach decides on each managed resource, and writes the changes.
func (f *Fleet) writeEach(ctx context.Context, results []Result, decide func(*Result, situation) (decision, *managed.Changes)) error {
	tasks := tasksOf(results)
	err := f.each(ctx, tasks, func(ctx context.Context, t *task) (godwit.Outcome, error) {
		return f.writeOnce(ctx, t, func(s situation) (decision, *managed.Changes) { return decide(t.Result, s) })
	})
	for _, t := range tasks {
		if !t.isDone() {
			t.setResult(endWith(stepEnd, PhaseInterrupted, ReasonStopped, "the run stopped before this managed resource"))
		}
	}
	return err
}

// writeOnce decides on a managed resource and writes the changes. After a conflict it decides again. A decision without
// changes only ends the task.
func (f *Fleet) writeOnce(ctx context.Context, t *task, decide func(situation) (decision, *managed.Changes)) (godwit.Outcome, error) {
	for {
		m, err := managed.Read(ctx, f.client, f.kind.Resource, t.Item)
		if err != nil {
			return f.endIfFinal(t, err)
		}
		d, c := decide(f.situation(m, t.Item))
		if c.IsEmpty() {
			t.setResult(d)
			return outcomeOf(t.Phase), nil
		}
		switch err := c.Write(ctx, f.client, f.kind.Resource, m); {
		case apierror.IsConflictOrNotFound(err): // read again
		case err != nil:
			return f.endIfFinal(t, err)
		default:
			t.setResult(d)
			return outcomeOf(t.Phase), nil
		}
	}
}

// decideRollback decides what a rollback writes. It is pure.
func decideRollback(s situation) (decision, *managed.Changes) {
	switch {
	case !s.exists:
		return endWith(stepEnd, PhaseGone, nil, "the managed resource is deleted"), nil
	case s.journalErr != nil:
		reason, message := unreadable(s.journalErr)
		return endWith(stepEnd, PhaseFailed, reason, "%s", message), nil
	case s.journal == nil:
		return endWith(stepEnd, PhaseRolledBack, nil, ""), nil // the answer to the write was lost
	}
	c := s.journal.endTrial(&managed.Changes{}, s.policies).Remove(AnnotationJournal)
	switch j := s.journal; {
	case j.Phase == phasePausing:
		return endWith(stepAbandon, PhaseRolledBack, nil, ""), c.Remove(managed.AnnotationPaused)
	case j.Phase == phaseDoubled:
		return endWith(stepEnd, PhaseSkipped, ReasonSecondResource, "%s", j.doubled()), nil
	case j.Phase == phaseCreated, !j.ended() && s.creations != j.Creations:
		return endWith(stepEnd, PhaseSkipped, ReasonCreated, "the provider has begun to create an external resource. Run the renaming again: it waits for the outcome, and then restores the name %q", quote.Clip(j.from(), nameBytes)), nil
	case j.Phase == phaseRenamed && j.Creations != "" && s.creations != j.Creations:
		return endWith(stepEnd, PhaseSkipped, ReasonCreated, "the provider has created an external resource since the renaming, so that the old name %q may identify none: see in the external system which ones exist", quote.Clip(j.from(), nameBytes)), nil
	case s.nameText() != j.To && j.Phase != phaseObserving:
		return endWith(stepEnd, PhaseSkipped, ReasonChanged, "another client has changed the external name to %q since the renaming", quote.Clip(s.nameText(), nameBytes)), nil
	}
	return endWith(stepUndo, PhaseRolledBack, nil, ""), c.Name(s.journal.From)
}
