package fleet

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/walk"
)

// Report is the report of a run.
type Report struct {
	// Results has the managed resources of the run, in order.
	Results []Result
	// Stopped means that a failed canary, or a failed managed resource of a batch, ended the run early.
	Stopped bool
}

// Count returns the number of results with a phase.
func (r Report) Count(p Phase) int64 {
	n := int64(0)
	for _, one := range r.Results {
		if one.Phase == p {
			n++
		}
	}
	return n
}

// Apply renames the items whose action is Rename, after it has resumed those whose action is Resume. It returns an
// error if the context ended; the report has the state of each item. After a canary that is not renamed, or a failure in a batch, it
// does not start the rest. Once a provider has begun to create an external resource, Apply writes no further name that the
// provider may act on unproven.
func (f *Fleet) Apply(ctx context.Context, items []Item) (Report, error) {
	report := Report{Results: chosen(items)}
	var err error
	rest := report.Results
	created := &atomic.Bool{}
	for size, canary := f.options.Canaries, true; len(rest) > 0 && err == nil && !report.Stopped; size, canary = f.options.Batch, false {
		n := min(size, len(rest))
		batch := tasksOf(rest[:n])
		for _, t := range batch {
			t.canary, t.created = canary, created
		}
		rest = rest[n:]
		err = f.rename(ctx, batch)
		report.Stopped = err == nil && slices.ContainsFunc(batch, (*task).stopsRun)
		stop(batch)
	}
	stop(tasksOf(rest))
	return report, err
}

// chosen returns the items that Apply works on, in its order, as results without a phase.
func chosen(items []Item) []Result {
	n := 0
	for _, i := range items {
		if i.Action == Resume || i.Action == Rename {
			n++
		}
	}
	results := make([]Result, 0, n)
	for _, action := range []Action{Resume, Rename} {
		for _, i := range items {
			if i.Action == action {
				i.Reason, i.Message, i.Fix = nil, "", nil
				results = append(results, Result{Item: i})
			}
		}
	}
	return results
}

// tasksOf returns tasks that write to the results in a slice.
func tasksOf(results []Result) []*task {
	tasks := make([]*task, len(results))
	for i := range results {
		tasks[i] = &task{Result: &results[i], begun: results[i].Action == Resume}
	}
	return tasks
}

// stop ends the tasks that a run has left.
func stop(tasks []*task) {
	for _, t := range tasks {
		switch {
		case t.isDone():
		case t.begun:
			t.setUnfinished(PhaseInterrupted, ReasonStopped, "the run stopped during the renaming")
		default:
			t.setResult(endWith(stepEnd, PhaseSkipped, ReasonStopped, "the run stopped before this managed resource"))
		}
	}
}

// goals are the phases that all managed resources of a batch reach before the next one begins: the provider works on
// all pauses, and then on all new names, at the same time.
var goals = []phase{phasePausing, phaseRenaming, ""}

// rename renames a batch.
func (f *Fleet) rename(ctx context.Context, batch []*task) error {
	for _, goal := range goals {
		batch = slices.DeleteFunc(slices.Clone(batch), (*task).isDone)
		err := f.each(ctx, batch, func(inner context.Context, t *task) (godwit.Outcome, error) {
			return f.advance(inner, ctx, t, goal)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// progress passes the state of a task to Options.Progress.
func (f *Fleet) progress(t *task) {
	if f.options.Progress != nil {
		f.options.Progress(*t.Result)
	}
}

// each acts on tasks concurrently. A task fails when its attempts are used up.
func (f *Fleet) each(ctx context.Context, tasks []*task, act walk.Action[*task]) error {
	page := func(yield func(walk.Page[*task], error) bool) { yield(walk.Page[*task]{Items: tasks}, nil) }
	_, err := walk.Run(ctx, page, act, walk.Options{Limiter: f.options.Limiter, Attempts: f.options.Attempts, OnEnd: func(o walk.Object) {
		if t, ok := o.(*task); ok {
			f.progress(t)
		}
	}})
	for _, t := range tasks {
		if t.err != nil && !t.isDone() && ctx.Err() == nil {
			t.setUnfinished(PhaseFailed, ReasonUnanswered, quote.Line(apierror.Message(t.err)))
			f.progress(t)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
