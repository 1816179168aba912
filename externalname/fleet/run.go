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
	var tasks []*task
	for _, action := range []Action{Resume, Rename} {
		for _, i := range items {
			if i.Action == action {
				i.Reason, i.Message, i.Fix = "", "", nil
				tasks = append(tasks, &task{Result: Result{Item: i}, begun: action == Resume})
			}
		}
	}
	var report Report
	var err error
	for begin, size := 0, f.options.Canaries; begin < len(tasks) && err == nil && !report.Stopped; size = f.options.Batch {
		batch := tasks[begin:min(begin+size, len(tasks))]
		begin += len(batch)
		err = f.rename(ctx, batch)
		report.Stopped = slices.ContainsFunc(batch, (*task).bad)
	}
	for _, t := range tasks {
		if !t.ended() {
			t.end(ends(moveEnd, PhaseSkipped, ReasonStopped, "the run stopped before this managed resource"))
			if t.begun {
				t.end(ends(moveEnd, PhaseInterrupted, ReasonStopped, "the run stopped during the renaming; the next one continues it"))
			}
		}
		report.Results = append(report.Results, t.Result)
	}
	return report, err
}

// goals are the phases up to which the managed resources of a batch go together, so that the provider
// works on all pauses, and then on all new names, at the same time.
var goals = []phase{phasePausing, phaseRenaming, ""}

// rename carries a batch out.
func (f *Fleet) rename(ctx context.Context, batch []*task) error {
	for _, goal := range goals {
		err := f.each(ctx, batch, func(inner context.Context, t *task) (godwit.Outcome, error) {
			return f.advance(inner, ctx, t, goal)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// each acts on tasks concurrently. A task whose attempts are used up has failed.
func (f *Fleet) each(ctx context.Context, tasks []*task, act walk.Action[*task]) error {
	page := func(yield func(walk.Page[*task], error) bool) { yield(walk.Page[*task]{Items: tasks}, nil) }
	_, err := walk.Run(ctx, page, act, walk.Options{Limiter: f.options.Limiter, Attempts: f.options.Attempts, OnEnd: func(o walk.Object) {
		if t, ok := o.(*task); ok && f.options.Progress != nil {
			f.options.Progress(t.Result)
		}
	}})
	for _, t := range tasks {
		if t.err != nil && !t.ended() && ctx.Err() == nil {
			t.end(ends(moveEnd, PhaseFailed, ReasonUnanswered, "%s", quote.Line(apierror.Message(t.err))))
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
