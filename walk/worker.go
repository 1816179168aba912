package walk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
)

// maxParked bounds the objects that wait for their next attempt. While more wait, no other object is started; the
// workers make the attempts that are due.
const maxParked = 256

// runner is a running walk.
type runner[T Object] struct {
	ctx     context.Context //nolint:containedctx // a runner lives as long as its walk; ends when the walk is told to stop
	stop    context.CancelCauseFunc
	actCtx  context.Context //nolint:containedctx // as above; ends Options.Grace later
	release func()

	act     Action[T]
	options Options
	jobs    chan job[T]
	due     chan job[T]   // parked objects whose wait is over; a send never blocks
	room    chan struct{} // signals to the feeder that an object is no longer parked
	workers sync.WaitGroup
	pending sync.WaitGroup // objects announced and not yet done

	mu        sync.Mutex
	report    Report      // Remaining is without the objects in inFlight
	inFlight  int64       // objects announced and not yet done
	unsettled []*progress // pages in order, the first not yet settled
	parked    int
	exhausted int // objects in a row that used up their attempts for the API server's own faults
	causes    causes
}

// progress is the remaining work of one page.
type progress struct {
	last string // key of the last object
	left int
	fed  bool // every object of the page is announced
	bad  bool // an object failed or was deferred: the cursor never passes the page
}

type job[T Object] struct {
	object  T
	page    *progress
	attempt int
	err     error          // of the attempt before
	cause   string         // of that error; empty for the API server itself
	probe   bool           // the object is retried although its cause is suspended
	outcome godwit.Outcome // that stands, see UnfinishedError; 0 for none
}

func newRunner[T Object](ctx context.Context, act Action[T], o Options) *runner[T] {
	r := &runner[T]{
		act: act, options: o,
		jobs:   make(chan job[T]),
		due:    make(chan job[T], maxParked+1+o.workers()), // objects that are started when the feeder stops may have to wait too
		room:   make(chan struct{}, 1),
		causes: causes{},
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

// finish waits until every announced object is done and the workers have ended.
func (r *runner[T]) finish() {
	r.pending.Wait()
	close(r.jobs)
	r.workers.Wait()
	r.release()
}

func (r *runner[T]) work() {
	for {
		select {
		case j := <-r.due:
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

// resume makes the next attempt, unless the walk was stopped meanwhile, or retries for the cause of the last error were
// suspended.
func (r *runner[T]) resume(j job[T]) {
	switch {
	case r.ctx.Err() != nil:
		r.done(j, godwit.Deferred, fmt.Errorf("stopped before attempt %d: %w", j.attempt, j.err))
	case !j.probe && r.suspended(j.cause):
		r.done(j, godwit.Failed, notRetried(j.attempt-1, j.err))
	default:
		r.handle(j)
	}
}

// handle makes one attempt, and finishes, parks or fails the object.
func (r *runner[T]) handle(j job[T]) {
	outcome, err := r.act(r.actCtx, j.object)
	if j.outcome == 0 && settled(outcome) && errors.As(err, new(*UnfinishedError)) {
		j.outcome = outcome
	}
	switch {
	case outcome == godwit.Deferred, err == nil && settled(outcome):
		r.done(j, outcome, err)
		return
	case err == nil:
		r.done(j, godwit.Failed, fmt.Errorf("the action returned %v without an error", outcome))
		return
	case apierror.IsEndOfRun(err):
		r.stop(err) // before the next object meets the same answer
		r.done(j, godwit.Deferred, nil)
		return
	case errors.Is(err, ErrStopped):
		r.done(j, godwit.Deferred, nil) // a stop is not a failure of the object
		return
	case r.actCtx.Err() != nil && errors.Is(err, context.Canceled):
		r.done(j, godwit.Deferred, fmt.Errorf("abandoned %v after the walk was told to stop: %w", r.options.Grace, err))
		return
	}
	r.failed(j, err)
}

// failed parks or fails an object after a failed attempt.
func (r *runner[T]) failed(j job[T], err error) {
	hint, transient := r.options.Retry(err)
	if !transient {
		r.done(j, godwit.Failed, err)
		return
	}
	j.cause = r.options.Cause(err)
	retry, probe := r.recordFailure(j.cause)
	j.probe = j.probe || probe
	switch {
	case j.attempt == r.options.Attempts:
		r.exhaust(j, err)
	case !retry && !j.probe:
		r.done(j, godwit.Failed, notRetried(j.attempt, err))
	default:
		delay := backoff(j.attempt, hint)
		j.attempt, j.err = j.attempt+1, err
		r.park(j, delay)
	}
}

func notRetried(attempts int, err error) error {
	return fmt.Errorf("not retried after attempt %d, because other objects fail for the same cause: %w", attempts, err)
}

// settled reports whether an outcome leaves no work. An unknown outcome counts as Failed.
func settled(o godwit.Outcome) bool {
	return o == godwit.Migrated || o == godwit.Unchanged || o == godwit.Skipped || o == godwit.Gone
}

// recordFailure records the cause of a failed attempt, and reports whether the object is retried. It is retried after
// an error of the API server itself, which concerns every object.
func (r *runner[T]) recordFailure(cause string) (retry, probe bool) {
	if cause == "" {
		return true, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exhausted = 0 // the server answers
	return r.causes.fail(cause, time.Now())
}

func (r *runner[T]) suspended(cause string) bool {
	if cause == "" {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.causes.suspended(cause)
}

// park keeps an object until its next attempt is due, without a worker.
func (r *runner[T]) park(j job[T], delay time.Duration) {
	r.mu.Lock()
	r.parked++
	r.mu.Unlock()
	go func() {
		_ = Wait(r.ctx, delay) // resume checks the context
		r.due <- j
	}()
}

func (r *runner[T]) unpark() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parked--
	select {
	case r.room <- struct{}{}:
	default:
	}
}

// full reports whether too many objects are parked to start another one.
func (r *runner[T]) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parked > maxParked
}

// exhaust fails an object that has used up its attempts. After maxExhausted such objects, it stops the walk or suspends
// retries for their cause.
func (r *runner[T]) exhaust(j job[T], err error) {
	defer r.pending.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	if j.cause != "" {
		r.causes.exhaust(j.cause)
	} else if r.exhausted++; r.exhausted >= maxExhausted {
		r.stop(fmt.Errorf("stopped after %d objects in a row used up %d attempts each: %w",
			maxExhausted, r.options.Attempts, err))
	}
	r.tally(j, godwit.Failed, fmt.Errorf("%d attempts: %w", j.attempt, err))
}

func (r *runner[T]) done(j job[T], outcome godwit.Outcome, err error) {
	defer r.pending.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	if outcome != godwit.Skipped { // no request was sent, so it does not show that the server works
		r.exhausted = 0
	}
	if j.cause != "" && settled(outcome) {
		r.causes.pass(j.cause)
	}
	r.tally(j, outcome, err)
}

// tally counts one finished object.
func (r *runner[T]) tally(j job[T], outcome godwit.Outcome, err error) {
	if j.outcome != 0 {
		outcome, err = j.outcome, nil
	}
	r.report.Counts.Add(outcome)
	r.inFlight--
	if err != nil && len(r.report.Failures) < r.options.MaxFailures {
		r.report.Failures = append(r.report.Failures, godwit.Failure{
			Namespace: j.object.GetNamespace(), Name: j.object.GetName(),
			Finding: godwit.Finding{Reason: r.options.Reason(err), Message: err.Error()}, Err: err,
		})
	}
	j.page.left--
	j.page.bad = j.page.bad || !settled(outcome)
	r.advance()
	if r.options.OnEnd != nil {
		r.options.OnEnd(j.object)
	}
	if r.options.OnObject != nil {
		r.options.OnObject(r.copyReport())
	}
}

// open begins a page. It does not track pages after a bad one, because the cursor cannot reach them.
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
	r.inFlight++
	if r.report.Remaining > 0 {
		r.report.Remaining--
	}
}

// withdraw reverts announce for an object that no worker has taken.
func (r *runner[T]) withdraw(p *progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.left--
	r.inFlight--
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

// copyReport copies the report. It clips the failures, so that a later append does not change the copy.
func (r *runner[T]) copyReport() Report {
	c := r.report
	if c.Remaining >= 0 {
		c.Remaining += r.inFlight
	}
	c.Failures = c.Failures[:len(c.Failures):len(c.Failures)]
	return c
}
