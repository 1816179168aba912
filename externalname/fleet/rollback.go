package fleet

import (
	"context"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/quote"
)

// Rollback restores the name from before the last renaming of each managed resource in scope that has a
// journal, byte for byte, and removes the journal. A pause of an interrupted renaming ends. A name that another client has changed
// since the renaming stays. Rollback needs no provider: it also works while the provider is away.
func (f *Fleet) Rollback(ctx context.Context) (Report, error) {
	var r Report
	err := f.scan(ctx, func(m managed) error {
		if _, has := m.GetAnnotations()[AnnotationJournal]; has {
			r.Results = append(r.Results, Result{Item: itemOf(m)})
		}
		return nil
	})
	if err != nil {
		return Report{}, err
	}
	return r, f.writeEach(ctx, r.Results, func(_ *Result, s situation) (decision, changes) { return back(s) })
}

// itemOf is a managed resource with the name from before its last renaming.
func itemOf(m managed) Item {
	i := Item{Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID()}
	if name := m.externalName(); name != nil {
		i.Current = *name
	}
	if j, err := readJournal(m); err == nil && j != nil && j.From != nil {
		i.Proposed = *j.From
	}
	return i
}

// writeEach writes once what is decided on each managed resource.
func (f *Fleet) writeEach(ctx context.Context, results []Result, decide func(*Result, situation) (decision, changes)) error {
	tasks := tasksOf(results)
	err := f.each(ctx, tasks, func(ctx context.Context, t *task) (godwit.Outcome, error) {
		return f.writeOnce(ctx, t, func(s situation) (decision, changes) { return decide(t.Result, s) })
	})
	for _, t := range tasks {
		if !t.ended() {
			t.end(ends(moveEnd, PhaseInterrupted, ReasonStopped, "the run stopped before this managed resource"))
		}
	}
	return err
}

// writeOnce writes what is decided on a managed resource, and decides again if another client has changed it meanwhile.
// A decision without changes only ends the task.
func (f *Fleet) writeOnce(ctx context.Context, t *task, decide func(situation) (decision, changes)) (godwit.Outcome, error) {
	for {
		m, err := f.read(ctx, t.Item)
		if err != nil {
			return f.failed(t, err)
		}
		d, c := decide(f.situation(m, t.Item))
		if len(c) == 0 {
			t.end(d)
			return outcomeOf(t.Phase), nil
		}
		switch err := f.patch(ctx, m, c); {
		case apierror.Moved(err): // read again
		case err != nil:
			return f.failed(t, err)
		default:
			t.end(d)
			return outcomeOf(t.Phase), nil
		}
	}
}

// back decides what a rollback writes. It is pure.
func back(s situation) (decision, changes) {
	switch {
	case !s.exists:
		return ends(moveEnd, PhaseGone, nil, "the managed resource is deleted"), nil
	case s.journalErr != nil:
		reason, message := unreadable(s.journalErr)
		return ends(moveEnd, PhaseFailed, reason, "%s", message), nil
	case s.journal == nil:
		return ends(moveEnd, PhaseRolledBack, nil, ""), nil // the answer to the write was lost
	case s.journal.Phase == phasePausing:
		return ends(moveAbandon, PhaseRolledBack, nil, ""), changes{}.remove(annotationPaused).remove(AnnotationJournal)
	case s.nameText() != s.journal.To:
		return ends(moveEnd, PhaseSkipped, ReasonChanged, "another client has changed the external name to %q since the renaming", quote.Clip(s.nameText(), nameBytes)), nil
	}
	return ends(moveUndo, PhaseRolledBack, nil, ""), changes{}.name(s.journal.From).remove(AnnotationJournal)
}
