package walk

import (
	"context"
)

// Run acts on every object of pages and reports the outcomes. Objects are handled
// concurrently, and pages follow each other without a pause: OnPage runs while the
// last objects of the page before may still be under way.
//
// After a failed attempt, an object waits for its next attempt without a worker. While more than 256 objects wait, Run
// starts no other object. What happens next depends on the cause of the failures, see Options.Cause:
//
//   - The cause is the API server itself, which then fails for every object: the
//     walk ends with an error when 32 objects in a row have used up their attempts.
//   - The cause is another one, such as the webhook of one namespace: it never ends
//     the walk. The walk stops retrying for the cause when 32 objects have used up
//     their attempts, or when no object has got past the cause for a minute. From
//     then on an object that fails for this cause is Failed after its first
//     attempt, so that the walk reaches later objects. One object per minute is
//     still retried. When it gets past the cause, retries start again.
//
// Run returns an error if the walk did not reach its end: the source failed, OnPage returned an error, the context
// ended, or the API server failed as above. The report counts every started object in any case. An object that waited
// for another attempt, or was abandoned after the grace, counts as Deferred.
func Run[T Object](ctx context.Context, pages Source[T], act Action[T], o Options) (Report, error) {
	r := newRunner(ctx, act, o.withDefaults())
	defer r.stop(context.Canceled)

	err := r.feed(pages)
	if err != nil {
		r.stop(err)
	}
	r.finish()
	if err == nil {
		err = context.Cause(r.ctx)
	}
	if err == nil {
		r.report.Complete = true
		r.report.Remaining = 0 // also where the server never reported it
	}
	return r.report, err
}

// feed passes every object of the source to the workers.
func (r *runner[T]) feed(pages Source[T]) error {
	for page, err := range pages {
		if cause := context.Cause(r.ctx); cause != nil {
			return cause
		}
		if err != nil {
			return err
		}
		r.recordPage(page)
		if r.options.OnPage != nil {
			if err := r.options.OnPage(r.ctx, r.snapshot()); err != nil {
				return err
			}
		}
		if err := r.feedPage(page.Items); err != nil {
			return err
		}
	}
	return nil
}

// recordPage records the metadata of a page in the report.
func (r *runner[T]) recordPage(page Page[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.ResourceVersion = page.ResourceVersion
	r.report.Remaining = page.Remaining
	if page.Remaining >= 0 {
		r.report.Remaining += int64(len(page.Items))
	}
}

func (r *runner[T]) feedPage(objects []T) error {
	if len(objects) == 0 {
		return nil
	}
	p := r.open(Key(objects[len(objects)-1]))
	for _, object := range objects {
		if err := r.awaitRoom(); err != nil {
			return err
		}
		r.announce(p)
		select {
		case r.jobs <- job[T]{object: object, page: p, attempt: 1}:
		case <-r.ctx.Done():
			r.withdraw(p)
			return context.Cause(r.ctx)
		}
	}
	r.fed(p)
	return nil
}

// awaitRoom waits while too many objects wait for their next attempt. If the walk is stopped, it returns the reason.
func (r *runner[T]) awaitRoom() error {
	for r.ctx.Err() == nil && r.full() {
		select {
		case <-r.room:
		case <-r.ctx.Done():
		}
	}
	return context.Cause(r.ctx)
}
