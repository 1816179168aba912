package fleet

import (
	"context"
	"slices"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/walk"
)

// Report is what a run has done.
type Report struct {
	// Results are those of the managed resources that the run was to change, in order.
	Results []Result
	// Stopped means that a bad canary, or a bad managed resource of a batch, ended the run early.
	Stopped bool
}

// Count is how many results have a phase.
func (r Report) Count(p Phase) int64 {
	n := int64(0)
	for _, one := range r.Results {
		if one.Phase == p {
			n++
		}
	}
	return n
}

// Apply renames the items whose action is Rename, after it has continued those whose action is Resume.
// It returns an error if the context ended; the report says how far each item is. After a bad canary, or
// a batch with a bad managed resource, it begins no other one.
func (f *Fleet) Apply(ctx context.Context, items []Item) (Report, error) {
	report := Report{Results: chosen(items)}
	var err error
	rest := report.Results
	for size := f.options.Canaries; len(rest) > 0 && err == nil && !report.Stopped; size = f.options.Batch {
		n := min(size, len(rest))
		batch := tasksOf(rest[:n])
		rest = rest[n:]
		err = f.rename(ctx, batch)
		report.Stopped = err == nil && slices.ContainsFunc(batch, (*task).bad)
		stop(batch)
	}
	stop(tasksOf(rest))
	return report, err
}

// chosen are the items that Apply works on, in its order, each without a result.
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

// tasksOf are tasks that write their results into a slice.
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
		case t.ended():
		case t.begun:
			t.end(ends(moveEnd, PhaseInterrupted, ReasonStopped, "the run stopped during the renaming; the next one continues it"))
		default:
			t.end(ends(moveEnd, PhaseSkipped, ReasonStopped, "the run stopped before this managed resource"))
		}
	}
}

// goals are the phases up to which the managed resources of a batch go together, so that the provider
// works on all pauses, and then on all new names, at the same time.
var goals = []phase{phasePausing, phaseRenaming, ""}

// rename carries a batch out.
func (f *Fleet) rename(ctx context.Context, batch []*task) error {
	for _, goal := range goals {
		batch = slices.DeleteFunc(slices.Clone(batch), (*task).ended)
		err := f.each(ctx, batch, func(inner context.Context, t *task) (godwit.Outcome, error) {
			return f.advance(inner, ctx, t, goal)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// progress tells the caller how far a task is.
func (f *Fleet) progress(t *task) {
	if f.options.Progress != nil {
		f.options.Progress(*t.Result)
	}
}

// each acts on tasks concurrently. A task whose attempts are used up has failed.
func (f *Fleet) each(ctx context.Context, tasks []*task, act walk.Action[*task]) error {
	page := func(yield func(walk.Page[*task], error) bool) { yield(walk.Page[*task]{Items: tasks}, nil) }
	_, err := walk.Run(ctx, page, act, walk.Options{Limiter: f.options.Limiter, Attempts: f.options.Attempts, OnEnd: func(o walk.Object) {
		if t, ok := o.(*task); ok {
			f.progress(t)
		}
	}})
	for _, t := range tasks {
		if t.err != nil && !t.ended() && ctx.Err() == nil {
			t.end(ends(moveEnd, PhaseFailed, ReasonUnanswered, "%s", quote.Line(apierror.Message(t.err))))
			f.progress(t)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
