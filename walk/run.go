package walk

import (
	"context"
	"time"

	"github.com/godwit-dev/godwit"
)

const (
	// DefaultFailures is how many failures a report names: enough to see the
	// pattern, bounded however many objects fail.
	DefaultFailures = 20

	// DefaultGrace is how long the objects under way may take when a walk is
	// told to stop: several times an ordinary write, shorter than the 30 s a
	// pod is given to end.
	DefaultGrace = 10 * time.Second
)

// Object is what a walk needs to know of the things it visits. Every
// Kubernetes object has it.
type Object interface {
	GetNamespace() string
	GetName() string
}

// Action handles one object and says what became of it. An error that is
// transient is tried again; any other makes the object Failed, unless the
// outcome is Deferred, in which case it is the reason of the deferral, or the
// error is an [UnfinishedError].
type Action[T Object] func(context.Context, T) (godwit.Outcome, error)

// UnfinishedError is returned with an outcome that settles the object, by an
// action that has another job to do on it beside the one that Run counts. The
// outcome stands. The object is tried again as with any error, and what the last
// attempt leaves undone is for the action to tell.
type UnfinishedError struct {
	// Cause decides whether there is another attempt.
	Cause error
}

func (e *UnfinishedError) Error() string { return e.Cause.Error() }

func (e *UnfinishedError) Unwrap() error { return e.Cause }

// Options tune [Run]. The zero value works.
type Options struct {
	// Limiter bounds the objects handled at once by its MaxInFlight. It does
	// not pace them itself: the requests of the action must go through its
	// RoundTripper. Nil means DefaultMaxInFlight objects at once.
	Limiter *Limiter
	// Attempts bounds the tries for one object; 0 means DefaultAttempts.
	Attempts int
	// Retry says whether an action's error is worth another attempt and how
	// long to wait at least; nil means [Transient].
	Retry func(error) (time.Duration, bool)
	// Cause names what made an attempt fail when that is not the API server itself
	// but concerns some objects only, such as a webhook; empty for the API server,
	// and for the way to it. Nil means [CauseOf].
	Cause func(error) string
	// MaxFailures bounds the failures a report names; 0 means DefaultFailures.
	MaxFailures int
	// Grace is how long the objects under way may take after the walk was told
	// to stop, by its context or otherwise; 0 means DefaultGrace. The action's
	// context ends only after it, so that a write that was sent is also counted.
	Grace time.Duration
	// OnPage is called before each page is acted on. Its error stops the walk
	// and is what Run returns.
	OnPage func(context.Context, Report) error
	// OnEnd is called with each object that is done, one call at a time, before
	// OnObject. The walk waits for it: it must be quick.
	OnEnd func(Object)
	// OnObject is called after each object that is done, one call at a time.
	// The walk waits for it: it must be quick.
	OnObject func(Report)
}

// Report is what a walk has done so far. It is a value: what a hook is handed
// does not change afterwards.
type Report struct {
	Counts godwit.Counts
	// Failures are the first objects that failed, or were deferred for a
	// reason.
	Failures []godwit.Failure
	// Remaining counts the objects not yet handed to the action, as far as the
	// server said; -1 when it did not.
	Remaining int64
	// ResourceVersion is the newest page's.
	ResourceVersion string
	// Cursor is the key of the last object of the last page such that it and
	// every page before it are settled: no object failed, deferred or under way.
	// It goes back only where the source does, in a list that started again.
	Cursor string
	// Complete: the source ended and every object was handled.
	Complete bool
}

// Key is an object's place in its collection's order: namespace/name, or the
// name alone where there is no namespace. Keys compare as the API server's
// storage orders them, byte by byte.
func Key(o Object) string {
	if ns := o.GetNamespace(); ns != "" {
		return ns + "/" + o.GetName()
	}
	return o.GetName()
}

// Run acts on every object of pages and reports what became of them. Objects
// are handled concurrently and pages follow each other without a pause; the
// stop hook runs in between, while the last objects of the page before may
// still be under way.
//
// An object whose attempt failed waits for the next one aside, and holds no
// worker. While more than 256 objects wait, no other object is begun.
// What ends that depends on what made the attempts fail, see Options.Cause:
//
//   - The API server itself, which then fails for every object: the walk ends
//     with an error when 32 objects in a row have used up their attempts.
//   - Another cause, such as the webhook of one namespace: it never ends the
//     walk. The walk gives the cause up when 32 objects have used up their attempts
//     for it, or when no object has got past it for a minute. From then on an
//     object that fails for this cause is Failed after its first attempt, so that
//     later objects are tried; one object a minute is tried again. When it gets
//     past the cause, objects wait for the cause as they did at first.
//
// Run returns an error when the walk did not reach the end: the source failed,
// the hook said stop, the context ended, or the API server failed as above. The
// report is true in every case: every object that was begun is
// accounted for in it, those waiting for another attempt or abandoned after the
// grace as Deferred.
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
		r.report.Remaining = 0 // also where the server never said
	}
	return r.report, err
}

func (o Options) withDefaults() Options {
	if o.Attempts <= 0 {
		o.Attempts = DefaultAttempts
	}
	if o.Retry == nil {
		o.Retry = Transient
	}
	if o.Cause == nil {
		o.Cause = CauseOf
	}
	if o.MaxFailures <= 0 {
		o.MaxFailures = DefaultFailures
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	return o
}

func (o Options) workers() int {
	if o.Limiter != nil {
		return o.Limiter.MaxInFlight()
	}
	return DefaultMaxInFlight
}

// feed hands every object of the source to the workers.
func (r *runner[T]) feed(pages Source[T]) error {
	for page, err := range pages {
		if cause := context.Cause(r.ctx); cause != nil {
			return cause
		}
		if err != nil {
			return err
		}
		r.begin(page)
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

// begin notes what the server said with the page.
func (r *runner[T]) begin(page Page[T]) {
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

// awaitRoom waits while too many objects wait for their next attempt. It returns
// the reason when the walk is to stop.
func (r *runner[T]) awaitRoom() error {
	for r.ctx.Err() == nil && r.full() {
		select {
		case <-r.room:
		case <-r.ctx.Done():
		}
	}
	return context.Cause(r.ctx)
}
