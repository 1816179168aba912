package walk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-dev/godwit"
)

const (
	// maxParked bounds the objects that wait for their next attempt while
	// others go on. Beyond it, whoever fails waits in its worker.
	maxParked = 256

	// maxExhausted is how many objects in a row may use up their attempts
	// before the walk ends: by then the fault is not the objects'.
	maxExhausted = 32
)

// runner is one walk under way.
type runner[T Object] struct {
	ctx     context.Context //nolint:containedctx // the walk is this struct's whole life; ends when the walk is to stop
	stop    context.CancelCauseFunc
	actCtx  context.Context //nolint:containedctx // likewise; ends a grace later
	release func()

	act     Action[T]
	options Options
	jobs    chan job[T]
	again   chan job[T] // parked objects whose wait is over; a send never blocks
	workers sync.WaitGroup
	pending sync.WaitGroup // objects announced and not yet done

	mu        sync.Mutex
	report    Report
	unsettled []*progress // pages in order, the first not yet settled
	parked    int
	exhausted int // objects in a row that used up their attempts
}

// progress is what is left to do of one page.
type progress struct {
	last string // key of the last object
	left int
	fed  bool // every object of the page is announced
	bad  bool // an object failed or was deferred: the page never settles
}

type job[T Object] struct {
	object  T
	page    *progress
	attempt int
	err     error // of the attempt before
}

func newRunner[T Object](ctx context.Context, act Action[T], o Options) *runner[T] {
	r := &runner[T]{
		act: act, options: o,
		jobs:  make(chan job[T]),
		again: make(chan job[T], maxParked),
	}
	r.report.Remaining = -1
	r.ctx, r.stop = context.WithCancelCause(ctx)

	actCtx, abandon := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), stopKey{}, r.ctx))
	r.actCtx = actCtx
	disarm := context.AfterFunc(r.ctx, func() {
		timer := time.AfterFunc(o.Grace, abandon)
		context.AfterFunc(actCtx, func() { timer.Stop() })
	})
	r.release = func() { disarm(); abandon() }

	for range o.workers() {
		r.workers.Go(r.work)
	}
	return r
}

// finish waits until every announced object is done and the workers are gone.
func (r *runner[T]) finish() {
	r.pending.Wait()
	close(r.jobs)
	r.workers.Wait()
	r.release()
}

func (r *runner[T]) work() {
	for {
		select {
		case j := <-r.again:
			r.unpark()
			r.resume(j)
		case j, ok := <-r.jobs:
			if !ok {
				return
			}
			r.handle(j)
		}
	}
}

// resume makes the next attempt, unless the walk was told to stop meanwhile.
func (r *runner[T]) resume(j job[T]) {
	if r.ctx.Err() != nil {
		r.done(j, godwit.Deferred, fmt.Errorf("stopped before attempt %d: %w", j.attempt, j.err))
		return
	}
	r.handle(j)
}

// handle makes one attempt and decides what follows from it.
func (r *runner[T]) handle(j job[T]) {
	outcome, err := r.act(r.actCtx, j.object)
	switch {
	case outcome == godwit.Deferred, err == nil && settled(outcome):
		r.done(j, outcome, err)
		return
	case err == nil:
		r.done(j, godwit.Failed, fmt.Errorf("the action says %v and gives no reason", outcome))
		return
	case errors.Is(err, ErrStopped):
		r.done(j, godwit.Deferred, nil) // that the walk was stopped is no news about the object
		return
	case r.actCtx.Err() != nil && errors.Is(err, context.Canceled):
		r.done(j, godwit.Deferred, fmt.Errorf("abandoned %v after the walk was told to stop: %w", r.options.Grace, err))
		return
	}
	hint, again := r.options.Retry(err)
	switch {
	case !again:
		r.done(j, godwit.Failed, err)
	case j.attempt == r.options.Attempts:
		r.exhaust(j, err)
	default:
		delay := backoff(j.attempt, hint)
		j.attempt, j.err = j.attempt+1, err
		r.later(j, delay)
	}
}

// settled reports whether an outcome leaves nothing to do. An outcome outside
// the constants does not: it counts as Failed.
func settled(o godwit.Outcome) bool {
	return o == godwit.Migrated || o == godwit.Unchanged || o == godwit.Skipped || o == godwit.Gone
}

// later sees to the object's next attempt. It sets the object aside, so that
// the worker can go on with others; where no parking place is free, the worker
// waits with it.
func (r *runner[T]) later(j job[T], delay time.Duration) {
	if r.park() {
		go func() {
			_ = Wait(r.ctx, delay) // resume looks at the context
			r.again <- j
		}()
		return
	}
	_ = Wait(r.ctx, delay)
	r.resume(j)
}

func (r *runner[T]) park() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parked == maxParked {
		return false
	}
	r.parked++
	return true
}

func (r *runner[T]) unpark() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parked--
}

// exhaust fails an object that used up its attempts, and ends the walk when
// that has happened to many in a row.
func (r *runner[T]) exhaust(j job[T], err error) {
	defer r.pending.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.exhausted++; r.exhausted >= maxExhausted {
		r.stop(fmt.Errorf("give up after %d objects in a row used up %d attempts each: %w",
			maxExhausted, r.options.Attempts, err))
	}
	r.tally(j, godwit.Failed, fmt.Errorf("%d attempts: %w", j.attempt, err))
}

func (r *runner[T]) done(j job[T], outcome godwit.Outcome, err error) {
	defer r.pending.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	if outcome != godwit.Skipped { // nothing was sent, so nothing was shown to work
		r.exhausted = 0
	}
	r.tally(j, outcome, err)
}

// tally counts one object that is done.
func (r *runner[T]) tally(j job[T], outcome godwit.Outcome, err error) {
	r.report.Counts.Add(outcome)
	if err != nil && len(r.report.Failures) < r.options.MaxFailures {
		r.report.Failures = append(r.report.Failures, godwit.Failure{
			Namespace: j.object.GetNamespace(), Name: j.object.GetName(), Reason: err.Error(),
		})
	}
	j.page.left--
	j.page.bad = j.page.bad || !settled(outcome)
	r.advance()
	if r.options.OnObject != nil {
		r.options.OnObject(r.copyReport())
	}
}

// open begins a page. Behind a page that will never settle there is nothing to
// keep track of.
func (r *runner[T]) open(last string) *progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &progress{last: last}
	if len(r.unsettled) == 0 || !r.unsettled[0].bad {
		r.unsettled = append(r.unsettled, p)
	}
	return p
}

func (r *runner[T]) announce(p *progress) {
	r.pending.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	p.left++
	if r.report.Remaining > 0 {
		r.report.Remaining--
	}
}

// withdraw takes back the announcement of an object that no worker took.
func (r *runner[T]) withdraw(p *progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.left--
	if r.report.Remaining >= 0 {
		r.report.Remaining++
	}
	r.pending.Done()
}

func (r *runner[T]) fed(p *progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.fed = true
	r.advance()
}

func (r *runner[T]) advance() {
	for len(r.unsettled) > 0 {
		p := r.unsettled[0]
		if !p.fed || p.left > 0 || p.bad {
			return
		}
		r.report.Cursor = p.last
		r.unsettled = r.unsettled[1:]
	}
}

func (r *runner[T]) snapshot() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copyReport()
}

// copyReport clips the failures, so that a later one cannot reach into the
// copy.
func (r *runner[T]) copyReport() Report {
	c := r.report
	c.Failures = c.Failures[:len(c.Failures):len(c.Failures)]
	return c
}
