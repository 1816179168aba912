package handover

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/walk"
)

// task is the work on one pair in a run. One worker at a time has it.
type task struct {
	Pair
	result *fleet.Result
	// err is that of the last attempt.
	err error
	// last is the situation that was last seen; nil before the first.
	last *situation
	// ending is the last decision that was sent, if it ends the handover: its answer may be lost. undoing is an undo that has begun.
	ending, undoing *decision
	conflicts       int
}

func (t *task) isDone() bool { return t.result.Phase != "" }

func (t *task) setResult(d decision) {
	t.result.Phase, t.result.Reason, t.result.Message, t.result.Fix = d.phase, d.reason, d.message, fixOf(d, t.Pair)
}

// setUnfinished sets the result of a task that may have begun, and has not ended.
func (t *task) setUnfinished(p fleet.Phase, reason *godwit.Reason, message string) {
	held := ""
	if t.last != nil {
		held = t.last.holds()
	}
	t.setResult(endWith(stepEnd, p, reason, "%s%s", message, held))
	t.result.Unfinished = held != ""
}

// holds says what a handover that has not ended keeps the providers from; empty if nothing is begun.
func (s situation) holds() string {
	switch {
	case s.to.in(phaseReturning):
		return fmt.Sprintf("; %s is paused until a rollback has ended", s.pair.To)
	case s.from.in(phasePausing):
		return fmt.Sprintf("; %s only observes and %s is paused until the handover ends or is rolled back", s.pair.To, s.pair.From)
	case s.from.in(phaseReleased) && !s.to.in(phaseAdopted):
		return fmt.Sprintf("; %s and %s only observe until the handover ends or is rolled back", s.pair.To, s.pair.From)
	case s.to.in(phaseObserving):
		return fmt.Sprintf("; %s only observes until the handover ends or is rolled back", s.pair.To)
	}
	return ""
}

const (
	// firstPoll and lastPoll bound the time between two reads of a pair that waits for a provider.
	firstPoll = 50 * time.Millisecond
	lastPoll  = 2 * time.Second

	// maxConflicts bounds the attempts at a write after conflicts with other clients.
	maxConflicts = 20
)

// Run hands the external resources of pairs over. A pair whose handover was interrupted is resumed. It hands the first pair over
// alone, and continues with batches. It stops after a pair that is not handed over. The results are about the replacements.
func (h *Handover) Run(ctx context.Context, pairs []Pair) (fleet.Report, error) {
	report := fleet.Report{Results: make([]fleet.Result, len(pairs))}
	rest := tasksOf(pairs, report.Results)
	var err error
	for size := 1; len(rest) > 0 && err == nil && !report.Stopped; size = h.options.Batch {
		if h.options.DryRun {
			size = len(rest)
		}
		batch := rest[:min(size, len(rest))]
		rest = rest[len(batch):]
		err = h.each(ctx, batch, decide)
		report.Stopped = err == nil && !h.options.DryRun && slices.ContainsFunc(batch, func(t *task) bool {
			return t.result.Phase != fleet.PhaseHandedOver && t.result.Phase != fleet.PhaseUnchanged
		})
	}
	for _, t := range rest {
		t.setResult(skip(fleet.ReasonStopped, "the run stopped before this managed resource"))
	}
	return report, err
}

// Rollback returns the external resources of pairs to the originals. Each replacement is paused, without the name, and only observes.
func (h *Handover) Rollback(ctx context.Context, pairs []Pair) (fleet.Report, error) {
	report := fleet.Report{Results: make([]fleet.Result, len(pairs))}
	return report, h.each(ctx, tasksOf(pairs, report.Results), decideBack)
}

// tasksOf returns tasks that write to the results in a slice.
func tasksOf(pairs []Pair, results []fleet.Result) []*task {
	tasks := make([]*task, len(pairs))
	for i, p := range pairs {
		results[i].Item = fleet.Item{Namespace: p.To.Namespace, Name: p.To.Name, Proposed: p.ExternalName}
		tasks[i] = &task{Pair: p, result: &results[i]}
	}
	return tasks
}

// each acts on tasks concurrently. A task fails when its attempts are used up.
func (h *Handover) each(ctx context.Context, tasks []*task, decide func(situation) decision) error {
	page := func(yield func(walk.Page[*task], error) bool) { yield(walk.Page[*task]{Items: tasks}, nil) }
	act := func(inner context.Context, t *task) (godwit.Outcome, error) { return h.advance(inner, ctx, t, decide) }
	_, err := walk.Run(ctx, page, act, walk.Options{Limiter: h.options.Limiter, OnEnd: func(o walk.Object) {
		if t, ok := o.(*task); ok && t.isDone() && h.options.Progress != nil {
			h.options.Progress(*t.result)
		}
	}})
	for _, t := range tasks {
		switch {
		case t.isDone():
		case t.err != nil && ctx.Err() == nil:
			t.setUnfinished(fleet.PhaseFailed, fleet.ReasonUnanswered, quote.Line(apierror.Message(t.err)))
		default:
			t.setUnfinished(fleet.PhaseInterrupted, fleet.ReasonStopped, "the run stopped")
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// advance continues a handover until it ends. Each pass reads both managed resources, decides, and writes at most once. It does not
// wait for a provider after stop has ended.
func (h *Handover) advance(ctx, stop context.Context, t *task, decide func(situation) decision) (godwit.Outcome, error) {
	began, poll := h.clock.Now(), firstPoll
	for {
		o, s, err := h.readPair(ctx, t.Pair)
		if err != nil {
			return h.endIfFinal(t, err)
		}
		if t.last == nil {
			t.result.Current = s.to.nameText()
		}
		t.last = &s
		s.expired = h.clock.Since(began) >= h.timeout(s)
		d := t.next(s, decide)
		switch {
		case d.step == stepEnd:
			t.setResult(d)
			return godwit.Unchanged, nil
		case h.options.DryRun && (d.step == stepReturn || d.step == stepTakeBack):
			t.setResult(skip(d.reason, "%s", d.message))
			return godwit.Unchanged, nil
		case h.options.DryRun:
			t.setResult(endWith(stepEnd, fleet.PhaseHandedOver, nil, ""))
			return godwit.Unchanged, nil
		case d.step == stepWait:
			if err := walk.Wait(stop, poll); err != nil {
				return godwit.Deferred, err
			}
			poll = min(2*poll, lastPoll)
			continue
		}
		if t.ending = nil; d.phase != "" {
			t.ending = &d
		}
		if d.phase == fleet.PhaseRolledBack && s.to.journal != nil {
			t.result.Proposed = *cmp.Or(s.to.journal.Name, new(string))
		}
		err = h.write(ctx, o, s, d.step)
		switch {
		case apierror.IsConflictOrNotFound(err):
			t.ending = nil // another client's write came first
			if t.conflicts++; t.conflicts > maxConflicts {
				t.setUnfinished(fleet.PhaseFailed, fleet.ReasonConflict, "other clients changed the managed resources between each read and write; run again")
				return godwit.Failed, nil
			}
		case err != nil:
			return h.endIfFinal(t, err)
		case d.phase != "":
			t.setResult(d)
			return godwit.Migrated, nil
		default:
			began, poll = h.clock.Now(), firstPoll
		}
	}
}

// next decides the next step, by what the task has written before.
func (t *task) next(s situation, decide func(situation) decision) decision {
	switch {
	case t.ending != nil && t.ending.isWritten(s): // the answer to the last write was lost
		return t.ending.written()
	case t.undoing != nil && !s.to.exists && s.from.journal == nil: // the replacement was deleted meanwhile
		return t.undoing.written()
	case t.undoing != nil && s.to.in(phaseObserving): // otherwise another run was faster
		return t.undoing.first(s)
	}
	d := decide(s)
	if d.step == stepReturn {
		t.undoing = &d
	}
	return d.first(s)
}

// written returns the form of a decision whose write succeeded.
func (d decision) written() decision {
	d.step = stepEnd
	return d
}

// isWritten reports whether the last step of a handover is written.
func (d decision) isWritten(s situation) bool {
	switch d.step {
	case stepAdopt:
		return s.to.in(phaseAdopted)
	case stepReturn:
		return s.to.in(phaseReturned)
	case stepTakeBack:
		return s.from.journal == nil
	}
	return false
}

// endIfFinal ends a task if the API server refuses a request finally. Package walk retries other errors.
func (h *Handover) endIfFinal(t *task, err error) (godwit.Outcome, error) {
	if apierror.IsEndOfRun(err) {
		return godwit.Failed, err // the run ends, and the managed resource is not to blame
	}
	t.err = err
	if _, transient := walk.Transient(err); transient {
		return godwit.Failed, err
	}
	t.setUnfinished(fleet.PhaseFailed, fleet.FailureReason(err), quote.Line(apierror.Message(err)))
	return godwit.Failed, err
}

// timeout returns how long a provider may take for its next answer.
func (h *Handover) timeout(s situation) time.Duration {
	if s.to.in(phaseObserving) && s.from.journal == nil {
		return h.options.ProofTimeout
	}
	return h.options.PauseTimeout
}
