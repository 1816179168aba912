package fleet

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/walk"
)

// task is a managed resource under way in one run. One worker at a time has it.
type task struct {
	*Result
	// err is that of the last attempt.
	err error
	// begun means that the journal was written.
	begun bool
	// ending is the decision whose write was sent last, if it ends the renaming: the answer may be lost.
	ending decision
	// conflicts counts the writes that another client has overtaken.
	conflicts int
}

func (t *task) ended() bool { return t.Phase != "" }

func (t *task) end(d decision) {
	t.Phase, t.Reason, t.Message, t.Fix = d.phase, d.reason, d.message, nil
}

// bad reports whether a canary with this result ends the run.
func (t *task) bad() bool {
	switch t.Phase {
	case PhaseUndone, PhaseFailed, PhaseDeferred, PhaseInterrupted, "":
		return true
	}
	return false
}

const (
	// firstPoll and lastPoll bound the time between two reads of an object that waits for the provider.
	firstPoll = 50 * time.Millisecond
	lastPoll  = 2 * time.Second
)

// maxConflicts bounds the attempts at a write that other clients overtake.
const maxConflicts = 20

// advance carries a renaming on until it ends, or until the journal is at a phase. Each pass reads the
// object, decides, and writes at most once. It does not wait for the provider after stop has ended.
func (f *Fleet) advance(ctx, stop context.Context, t *task, goal phase) (godwit.Outcome, error) {
	if t.ended() {
		return godwit.Skipped, nil
	}
	began, poll := f.clock.Now(), firstPoll
	for {
		m, err := f.observe(ctx, t)
		if err != nil {
			return f.failed(t, err)
		}
		s := f.situation(m, t.Item)
		if s.reached(goal) {
			return godwit.Unchanged, nil
		}
		s.expired = f.clock.Since(began) >= f.timeout(s)
		d := next(s)
		if t.ending.phase != "" && s.exists && s.journalErr == nil && (s.journal == nil || s.journal.Phase == phaseRenamed) {
			d = t.ending.written()
		}
		switch d.move {
		case moveEnd:
			t.end(d)
			return outcomeOf(t.Phase), nil
		case moveWait:
			if err := waitEither(ctx, stop, poll); err != nil {
				return godwit.Deferred, err
			}
			poll = min(2*poll, lastPoll)
			continue
		}
		wrote, err := f.take(ctx, t, m, d)
		if t.ended() || err != nil {
			return outcomeOf(t.Phase), err
		}
		if wrote && d.move.reaches(goal) {
			return godwit.Unchanged, nil
		}
		if wrote {
			began, poll = f.clock.Now(), firstPoll
		}
	}
}

// reached reports whether the journal is at a phase of a renaming that has not ended, or after it.
func (s situation) reached(goal phase) bool {
	if s.journal == nil || s.journalErr != nil {
		return false
	}
	return goal == phasePausing && s.journal.Phase == phasePausing || goal != "" && s.journal.Phase == phaseRenaming
}

// reaches reports whether a step that was written brings the journal to a phase, which needs no further read.
func (m move) reaches(goal phase) bool {
	return m == movePause && goal == phasePausing || m == moveRename && goal == phaseRenaming
}

// written is a decision that was carried out.
func (d decision) written() decision {
	d.move = moveEnd
	return d
}

// take carries a decision out. It returns false if another client has changed the object meanwhile.
func (f *Fleet) take(ctx context.Context, t *task, m managed, d decision) (wrote bool, err error) {
	t.ending = decision{}
	if d.phase != "" {
		t.ending = d
	}
	switch err := f.write(ctx, m, t.Item, d.move); {
	case apierror.Moved(err):
		if t.conflicts++; t.conflicts > maxConflicts {
			t.end(ends(moveEnd, PhaseFailed, ReasonConflict, "other clients changed the managed resource between each read and write; run again"))
		}
		return false, nil
	case err != nil && d.move == moveRename && apierror.IsRefusal(err):
		return true, f.refused(ctx, t, m, err)
	case err != nil:
		_, err = f.failed(t, err)
		return false, err
	case d.phase != "":
		t.end(d)
	default:
		t.begun = true
	}
	return true, nil
}

// refused ends our pause after the API server has refused the new name.
func (f *Fleet) refused(ctx context.Context, t *task, m managed, refusal error) error {
	if err := f.write(ctx, m, t.Item, moveAbandon); err != nil {
		_, err = f.failed(t, err)
		return err
	}
	t.end(ends(moveEnd, PhaseFailed, ReasonRefused, "the API server refuses the new name, and the pause is removed: %s", quote.Line(apierror.Message(refusal))))
	return nil
}

// failed ends a task if the API server refuses for good. Package walk retries other errors.
func (f *Fleet) failed(t *task, err error) (godwit.Outcome, error) {
	t.err = err
	if _, transient := walk.Transient(err); transient {
		return godwit.Failed, err
	}
	t.end(ends(moveEnd, PhaseFailed, refusalReason(err), "%s", quote.Line(apierror.Message(err))))
	return godwit.Failed, err
}

func refusalReason(err error) *godwit.Reason {
	if apierror.IsRefusal(err) {
		return ReasonRefused
	}
	return ReasonUnanswered
}

func outcomeOf(p Phase) godwit.Outcome {
	switch p {
	case PhaseRenamed, PhaseRolledBack, PhaseRestored:
		return godwit.Migrated
	case PhaseUnchanged:
		return godwit.Unchanged
	case PhaseGone:
		return godwit.Gone
	case PhaseSkipped:
		return godwit.Skipped
	case PhaseDeferred, PhaseInterrupted:
		return godwit.Deferred
	}
	return godwit.Failed
}

// timeout is how long the provider may take for its next answer.
func (f *Fleet) timeout(s situation) time.Duration {
	if s.journal != nil && s.journal.Phase == phaseRenaming {
		return f.options.ProofTimeout
	}
	return f.options.PauseTimeout
}

// waitEither waits, and ends early when either context ends.
func waitEither(ctx, stop context.Context, d time.Duration) error {
	either, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(stop, func() { cancel(context.Cause(stop)) })()
	defer cancel(nil)
	return walk.Wait(either, d)
}

func (f *Fleet) situation(m managed, i Item) situation {
	if m.Unstructured == nil || i.UID != "" && m.GetUID() != i.UID {
		return situation{}
	}
	s := situation{
		exists: true, deleting: m.GetDeletionTimestamp() != nil, paused: m.paused(), name: m.externalName(), synced: m.synced(),
		identity: f.options.Identity.of(m), creations: m.creations(), current: i.Current, proposed: i.Proposed,
	}
	s.journal, s.journalErr = readJournal(m)
	return s
}

// write carries out a step in one patch at the resourceVersion that was read.
func (f *Fleet) write(ctx context.Context, m managed, i Item, step move) error {
	c, err := f.changesFor(m, i, step)
	if err != nil {
		return err
	}
	if err := f.patch(ctx, m, c); err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

func (f *Fleet) changesFor(m managed, i Item, step move) (changes, error) {
	c := changes{}
	if step == movePause {
		return c.set(annotationPaused, "true").write(journal{
			Phase: phasePausing, From: m.externalName(), To: i.Proposed, Earlier: m.GetAnnotations()[AnnotationJournal],
		})
	}
	j, err := readJournal(m)
	if err != nil {
		return nil, err
	}
	switch step {
	case moveRename:
		written := journal{Phase: phaseRenaming, From: j.From, To: j.To, Identity: f.options.Identity.of(m), Creations: m.creations(), Earlier: j.Earlier}
		return c.name(&j.To).remove(annotationPaused).write(written)
	case moveProve:
		return c.write(journal{Phase: phaseRenamed, From: j.From, To: j.To})
	case moveUndo:
		return c.name(j.From).restore(*j), nil
	case moveAbandon:
		if j.Phase == phasePausing {
			c.remove(annotationPaused)
		}
		return c.restore(*j), nil
	}
	return nil, fmt.Errorf("step %s writes nothing; this is an error of Godwit", step)
}

// observe reads a managed resource. The first time it is the plan's own reading: the write that follows is at the
// resourceVersion of the plan, so that the API server refuses it if the object has changed since.
func (f *Fleet) observe(ctx context.Context, t *task) (managed, error) {
	i := t.Item
	t.resourceVersion = ""
	if i.resourceVersion == "" || i.Action != Rename || i.Current == "" { // without a name: the annotation may be missing, or empty
		return f.read(ctx, i)
	}
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetNamespace(i.Namespace)
	o.SetName(i.Name)
	o.SetUID(i.UID)
	o.SetResourceVersion(i.resourceVersion)
	o.SetAnnotations(map[string]string{annotationName: i.Current})
	return managed{o}, nil
}

// read returns an empty managed for an object that does not exist.
func (f *Fleet) read(ctx context.Context, i Item) (managed, error) {
	o, err := f.get(ctx, i)
	if apierrors.IsNotFound(err) {
		return managed{}, nil
	}
	return managed{o}, err
}
