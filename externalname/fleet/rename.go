package fleet

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/internal/evidence"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/walk"
)

// task is the work on one managed resource in a run. One worker at a time has it.
type task struct {
	*Result
	// err is that of the last attempt.
	err error
	// begun means that the journal was written.
	begun bool
	// last is the journal as it was last seen or written, if it had not ended.
	last *journal
	// canary is a task whose skip also ends the run.
	canary bool
	// ending is the last decision that was sent, if it ends the renaming: its answer may be lost.
	ending decision
	// conflicts counts the conflicts with other clients.
	conflicts int
	// created is set, for all tasks of a run, when a provider has begun to create an external resource.
	created *atomic.Bool
}

func (t *task) isDone() bool { return t.Phase != "" }

func (t *task) setResult(d decision) {
	t.Phase, t.Reason, t.Message, t.Fix = d.phase, d.reason, d.message, nil
}

// holds says what a renaming that has not ended keeps the provider from; empty if nothing is begun.
func (t *task) holds() string {
	switch {
	case !t.begun:
		return ""
	case t.last == nil:
		return "; the managed resource may be paused, or its provider only observe it, since a run or a rollback has not ended the renaming"
	case t.last.Phase == phaseObserving:
		return "; its provider only observes the managed resource until a run or a rollback ends the renaming"
	case t.last.Phase == phaseRenaming:
		return fmt.Sprintf("; its new name %q is not proven, and its provider may write", quote.Clip(t.last.To, nameBytes))
	}
	return "; the managed resource is paused until a run or a rollback ends the renaming"
}

// setUnfinished sets the result of a task whose renaming may have begun, and has not ended.
func (t *task) setUnfinished(p Phase, reason *godwit.Reason, message string) {
	t.setResult(endWith(stepEnd, p, reason, "%s%s", message, t.holds()))
	t.Unfinished = t.begun
}

// stopsRun reports whether this result ends the run.
func (t *task) stopsRun() bool {
	switch t.Phase {
	case PhaseUndone, PhaseFailed, PhaseDeferred, PhaseInterrupted, "":
		return true
	case PhaseSkipped:
		return t.canary
	}
	return false
}

const (
	// firstPoll and lastPoll bound the time between two reads of an object that waits for the provider.
	firstPoll = 50 * time.Millisecond
	lastPoll  = 2 * time.Second
)

// maxConflicts bounds the attempts at a write after conflicts with other clients.
const maxConflicts = 20

// advance continues a renaming until it ends, or until the journal reaches a phase. Each pass reads the object,
// decides, and writes at most once. advance does not wait for the provider after stop has ended.
func (f *Fleet) advance(ctx, stop context.Context, t *task, goal phase) (godwit.Outcome, error) {
	if t.isDone() {
		return godwit.Skipped, nil
	}
	began, poll := f.clock.Now(), firstPoll
	for {
		m, err := f.observe(ctx, t)
		if err != nil {
			return f.endIfFinal(t, err)
		}
		s := f.situation(m, t.Item)
		t.see(s)
		if s.reached(goal) {
			return godwit.Unchanged, nil
		}
		s.expired = f.clock.Since(began) >= f.timeout(s)
		d := t.decide(s)
		if t.ending.phase != "" && s.exists && s.journalErr == nil && (s.journal == nil || s.journal.ended()) {
			d = t.ending.written()
		}
		if d.step == stepRename && t.created.Load() {
			d = endWith(stepAbandon, PhaseSkipped, ReasonStopped, "the provider has created an external resource for another managed resource; the pause is removed, and the name is as before")
		}
		switch d.step {
		case stepEnd:
			t.setResult(d)
			return outcomeOf(t.Phase), nil
		case stepWait:
			if err := waitEither(ctx, stop, poll); err != nil {
				return godwit.Deferred, err
			}
			poll = min(2*poll, lastPoll)
			continue
		}
		wrote, err := f.execute(ctx, t, m, d)
		if t.isDone() || err != nil {
			return outcomeOf(t.Phase), err
		}
		if wrote && d.step.reaches(goal) {
			return godwit.Unchanged, nil
		}
		if wrote {
			began, poll = f.clock.Now(), firstPoll
		}
	}
}

// see remembers the journal of an unfinished renaming.
func (t *task) see(s situation) {
	if !s.exists || s.journalErr != nil || s.journal == nil || s.journal.ended() {
		return
	}
	t.begun, t.last = true, s.journal
	if s.journal.Phase == phaseCreated {
		t.created.Store(true)
	}
}

// decide decides the next step, by what the task has seen before.
func (t *task) decide(s situation) decision {
	switch {
	case t.last == nil:
	case !s.exists && t.last.Phase == phaseObserving:
		return endWith(stepEnd, PhaseFailed, ReasonDeletedUnproven, "the managed resource was deleted while its provider only observed it: its external resource %q still exists, and no managed resource has it", quote.Clip(t.last.from(), nameBytes))
	case !s.exists && t.last.Phase != phasePausing:
		return endWith(stepEnd, PhaseFailed, ReasonDeletedUnproven, "the managed resource was deleted under the name %q, which was not proven: the provider has deleted what that name identifies, and its external resource %q may still exist",
			quote.Clip(t.last.To, nameBytes), quote.Clip(t.last.from(), nameBytes))
	case s.exists && s.journalErr == nil && s.journal == nil && t.ending.phase == "":
		return endWith(stepEnd, PhaseSkipped, ReasonChanged, "another client, such as a rollback, has ended the renaming")
	}
	return decideStep(s)
}

// reached reports whether the journal of an unfinished renaming is at a phase or after it.
func (s situation) reached(goal phase) bool {
	if s.journal == nil || s.journalErr != nil {
		return false
	}
	switch s.journal.Phase {
	case phasePausing:
		return goal == phasePausing
	case phaseObserving, phaseRenaming, phaseCreated:
		return goal != ""
	}
	return false
}

// reaches reports whether the write of a step brings the journal to a phase, so that no further read is needed.
func (m renameStep) reaches(goal phase) bool {
	return m == stepPause && goal == phasePausing || (m == stepTry || m == stepRename) && goal == phaseRenaming
}

// written returns the form of a decision whose write succeeded.
func (d decision) written() decision {
	d.step = stepEnd
	return d
}

// execute executes a decision. It returns false if another client has changed the object meanwhile.
func (f *Fleet) execute(ctx context.Context, t *task, m managed.Resource, d decision) (wrote bool, err error) {
	t.ending = decision{}
	if d.phase != "" {
		t.ending = d
	}
	switch err := f.write(ctx, m, t.Item, d.step); {
	case apierror.IsConflictOrNotFound(err):
		if t.conflicts++; t.conflicts > maxConflicts {
			t.setUnfinished(PhaseFailed, ReasonConflict, "other clients changed the managed resource between each read and write; run again")
		}
		t.ending = decision{} // another client's write came first
		return false, nil
	case err != nil && (d.step == stepTry || d.step == stepRename) && apierror.IsRefusal(err):
		return true, f.endPauseAfterRefusal(ctx, t, m, err)
	case err != nil:
		_, err = f.endIfFinal(t, err)
		return false, err
	case d.phase != "":
		t.setResult(d)
	default:
		t.begun = true
	}
	if d.step == stepHold {
		t.created.Store(true)
	}
	return true, nil
}

// endPauseAfterRefusal ends our pause after the API server has refused the new name.
func (f *Fleet) endPauseAfterRefusal(ctx context.Context, t *task, m managed.Resource, refusal error) error {
	err := f.write(ctx, m, t.Item, stepAbandon)
	if apierror.IsConflictOrNotFound(err) {
		return nil // the next pass reads it again
	}
	if err != nil {
		_, err = f.endIfFinal(t, err)
		return err
	}
	t.setResult(endWith(stepEnd, PhaseFailed, ReasonRefused, "the API server refuses the new name, and the pause is removed: %s", quote.Line(apierror.Message(refusal))))
	return nil
}

// endIfFinal ends a task if the API server refuses the write finally. Package walk retries other errors.
func (f *Fleet) endIfFinal(t *task, err error) (godwit.Outcome, error) {
	if apierror.IsEndOfRun(err) {
		return godwit.Failed, err // the run ends, and the managed resource is not to blame
	}
	t.err = err
	if _, transient := walk.Transient(err); transient {
		return godwit.Failed, err
	}
	t.setUnfinished(PhaseFailed, FailureReason(err), quote.Line(apierror.Message(err)))
	return godwit.Failed, err
}

// FailureReason returns why a request has failed finally: the API server refuses it, or does not answer.
func FailureReason(err error) *godwit.Reason {
	if apierror.IsRefusal(err) {
		return ReasonRefused
	}
	return ReasonUnanswered
}

func outcomeOf(p Phase) godwit.Outcome {
	switch p {
	case PhaseRenamed, PhaseRolledBack, PhaseRestored, PhaseHandedOver:
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

// timeout returns how long the provider may take for its next answer.
func (f *Fleet) timeout(s situation) time.Duration {
	if s.journal == nil || s.journal.ended() || s.journal.Phase == phasePausing {
		return f.options.PauseTimeout
	}
	return f.options.ProofTimeout
}

// waitEither waits until the time has passed or either context ends.
func waitEither(ctx, stop context.Context, d time.Duration) error {
	either, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(stop, func() { cancel(context.Cause(stop)) })()
	defer cancel(nil)
	return walk.Wait(either, d)
}

func (f *Fleet) situation(m managed.Resource, i Item) situation {
	if m.Unstructured == nil || i.UID != "" && m.GetUID() != i.UID {
		return situation{}
	}
	creation := evidence.CreationOf(m.Unstructured)
	s := situation{
		exists: true, deleting: m.GetDeletionTimestamp() != nil, paused: m.Paused(), name: m.ExternalName(), synced: m.Synced(),
		identity: f.options.Identity.of(f.kind).Hashes(m), creations: m.Creations(), creationUnknown: creation.Incomplete, creationFailed: creation.LastFailed(),
		policies: m.Policies(), trial: i.trial, current: i.Current, proposed: i.Proposed,
	}
	s.journal, s.journalErr = readJournal(m)
	return s
}

// write writes a step in one patch at the resourceVersion that was read.
func (f *Fleet) write(ctx context.Context, m managed.Resource, i Item, step renameStep) error {
	c, err := f.changesFor(m, i, step)
	if err != nil {
		return err
	}
	if err := c.Write(ctx, f.client, f.kind.Resource, m); err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

func (f *Fleet) changesFor(m managed.Resource, i Item, step renameStep) (*managed.Changes, error) {
	c := &managed.Changes{}
	if step == stepPause {
		return writeJournal(c.Set(managed.AnnotationPaused, "true"), journal{
			Phase: phasePausing, From: m.ExternalName(), To: i.Proposed, Earlier: m.GetAnnotations()[AnnotationJournal],
		})
	}
	j, err := readJournal(m)
	if err != nil {
		return nil, err
	}
	next := *j
	switch step {
	case stepTry, stepRename:
		next.Phase, next.Identity, next.Creations = phaseRenaming, f.options.Identity.of(f.kind).Hashes(m), m.Creations()
		if step == stepTry {
			next.Phase, next.Policies, c.Policies = phaseObserving, m.Policies(), managed.ObserveOnly
		}
		return writeJournal(c.Name(&j.To).Remove(managed.AnnotationPaused), next)
	case stepProve:
		return writeJournal(j.endTrial(c, m.Policies()), journal{Phase: phaseRenamed, From: j.From, To: j.To, Creations: m.Creations()})
	case stepUndo:
		j.removePause(c)
		return j.restore(j.endTrial(c, m.Policies()).Name(j.From)), nil
	case stepHold:
		next.Phase = phaseCreated
		return writeJournal(c.Set(managed.AnnotationPaused, "true"), next)
	case stepAccount:
		second := journal{Phase: phaseDoubled, From: j.From, To: j.To, Second: *cmp.Or(m.ExternalName(), new(string))}
		j.removePause(c)
		return writeJournal(j.endTrial(c, m.Policies()).Name(j.From), second)
	case stepAbandon:
		j.removePause(c)
		return j.restore(j.endTrial(c, m.Policies())), nil
	}
	return nil, fmt.Errorf("step %s writes nothing; this is an error of Godwit", step)
}

// observe reads a managed resource. The first call returns the facts of the plan: the write that follows has the
// resourceVersion of the plan, so the API server refuses it if the object has changed since.
func (f *Fleet) observe(ctx context.Context, t *task) (managed.Resource, error) {
	i := t.Item
	t.resourceVersion = ""
	if i.resourceVersion == "" || i.Action != Rename || i.Current == "" { // without a name: the annotation may be missing, or empty
		return managed.Read(ctx, f.client, f.kind.Resource, i)
	}
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetNamespace(i.Namespace)
	o.SetName(i.Name)
	o.SetUID(i.UID)
	o.SetResourceVersion(i.resourceVersion)
	o.SetAnnotations(map[string]string{managed.AnnotationName: i.Current})
	return managed.Of(o), nil
}
