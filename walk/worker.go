package walk

import (
	"context"
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
	ctx     context.Context // ends when the walk is to stop
	stop    context.CancelCauseFunc
	actCtx  context.Context // ends a grace later
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
}

func newRunner[T Object](ctx context.Context, act Action[T], o Options) *runner[T] {
	r := &runner[T]{
		act: act, options: o,
		jobs:  make(chan job[T]),
		again: make(chan job[T], maxParked),
	}
	r.report.Remaining = -1
	r.ctx, r.stop = context.WithCancelCause(ctx)

	actCtx, abandon := context.WithCancel(context.WithoutCancel(ctx))
	r.actCtx = actCtx
	disarm := context.AfterFunc(ctx, func() {
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
			r.handle(j)
		case j, ok := <-r.jobs:
			if !ok {
				return
			}
			r.handle(j)
		}
	}
}

// handle makes one attempt, or several where no parking place is free.
func (r *runner[T]) handle(j job[T]) {
	for {
		outcome, err := r.act(r.actCtx, j.object)
		hint, again := time.Duration(0), false
		if err != nil && outcome != godwit.Deferred {
			outcome = godwit.Failed
			hint, again = r.options.Retry(err)
		}
		if !again {
			r.done(j, outcome, err)
			return
		}
		if j.attempt == r.options.Attempts {
			r.exhaust(j, err)
			return
		}
		delay := backoff(j.attempt, hint)
		j.attempt++
		if r.park(j, delay, err) {
			return
		}
		if wait(r.ctx, delay) != nil {
			r.putOff(j, err)
			return
		}
	}
}

// park sets the object aside until its next attempt, so that the worker can go
// on with others.
func (r *runner[T]) park(j job[T], delay time.Duration, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parked == maxParked {
		return false
	}
	r.parked++
	go func() {
		if wait(r.ctx, delay) != nil {
			r.unpark()
			r.putOff(j, err)
			return
		}
		r.again <- j
	}()
	return true
}

func (r *runner[T]) unpark() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parked--
}

func (r *runner[T]) putOff(j job[T], err error) {
	r.done(j, godwit.Deferred, fmt.Errorf("stopped before attempt %d: %w", j.attempt, err))
}

// exhaust fails an object that used up its attempts, and ends the walk when
// that has happened to many in a row.
func (r *runner[T]) exhaust(j job[T], err error) {
	r.mu.Lock()
	r.exhausted++
	giveUp := r.exhausted >= maxExhausted
	r.mu.Unlock()
	if giveUp {
		r.stop(fmt.Errorf("give up after %d objects in a row used up %d attempts each: %w",
			maxExhausted, r.options.Attempts, err))
	}
	r.settle(j, godwit.Failed, fmt.Errorf("%d attempts: %w", j.attempt, err))
}

func (r *runner[T]) done(j job[T], outcome godwit.Outcome, err error) {
	r.mu.Lock()
	r.exhausted = 0
	r.mu.Unlock()
	r.settle(j, outcome, err)
}

// settle enters one object into the tally.
func (r *runner[T]) settle(j job[T], outcome godwit.Outcome, err error) {
	defer r.pending.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Counts.Add(outcome)
	if err != nil && len(r.report.Failures) < r.options.MaxFailures {
		r.report.Failures = append(r.report.Failures, godwit.Failure{
			Namespace: j.object.GetNamespace(), Name: j.object.GetName(), Reason: err.Error(),
		})
	}
	j.page.left--
	j.page.bad = j.page.bad || outcome == godwit.Failed || outcome == godwit.Deferred
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
