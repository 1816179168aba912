package walk

import (
	"context"
	"time"

	"github.com/godwit-dev/godwit"
)

// Object is what a walk needs to know of an object. Every Kubernetes object
// implements it.
type Object interface {
	GetNamespace() string
	GetName() string
}

// Key is namespace/name, or the name alone for a cluster-scoped object. Keys
// compare byte by byte, as the API server's storage orders them.
func Key(o Object) string {
	if ns := o.GetNamespace(); ns != "" {
		return ns + "/" + o.GetName()
	}
	return o.GetName()
}

// Action handles one object and returns its outcome. Run retries the object after
// a transient error. Any other error makes the object Failed, unless the error is
// an [UnfinishedError], or the outcome is Deferred: then the error is the reason of
// the deferral.
type Action[T Object] func(context.Context, T) (godwit.Outcome, error)

// UnfinishedError is returned by an action that is done with what Run counts, but
// has other work left on the object. It comes with an outcome that leaves nothing
// to count, and that outcome stands. Run retries the object as after any error. The
// action itself must report what the last attempt left undone.
type UnfinishedError struct {
	// Cause decides whether the object is retried.
	Cause error
}

func (e *UnfinishedError) Error() string { return e.Cause.Error() }

func (e *UnfinishedError) Unwrap() error { return e.Cause }

const (
	// DefaultFailures is how many failures a report names: enough to see the
	// pattern, bounded however many objects fail.
	DefaultFailures = 20

	// defaultGrace is how long the objects under way may take when a walk is
	// told to stop: several times an ordinary write, shorter than the 30 s a
	// pod is given to end.
	defaultGrace = 10 * time.Second
)

// Options tune [Run]. The zero value works.
type Options struct {
	// Limiter bounds the objects handled at once by its MaxInFlight. It does
	// not pace them itself: the requests of the action must go through its
	// RoundTripper. Nil means DefaultMaxInFlight objects at once.
	Limiter *Limiter
	// Attempts bounds the tries for one object; 0 means DefaultAttempts.
	Attempts int
	// Retry decides whether an object is retried after an action's error, and how
	// long to wait at least; nil means [Transient].
	Retry func(error) (time.Duration, bool)
	// Cause names what made an attempt fail when that is not the API server itself
	// but concerns some objects only, such as a webhook; empty for the API server,
	// and for the way to it. Nil means [CauseOf].
	Cause func(error) string
	// Reason is the reason of a [godwit.Failure] for an error. Nil means the reason of the
	// API server's answer, such as Conflict, and Failed for other errors. Each of these is a
	// value of its own: compare their names.
	Reason func(error) *godwit.Reason
	// MaxFailures bounds the failures a report names; 0 means DefaultFailures.
	MaxFailures int
	// Grace is how long the objects under way may take after the walk was told
	// to stop, by its context or otherwise; 0 means 10 seconds. The action's
	// context ends only after it, so that a write that was sent is also counted.
	Grace time.Duration
	// OnPage is called before each page is acted on. Its error stops the walk,
	// and Run returns it.
	OnPage func(context.Context, Report) error
	// OnEnd is called with each object that is done, one call at a time, before
	// OnObject. The walk waits for it: it must be quick.
	OnEnd func(Object)
	// OnObject is called after each object that is done, one call at a time.
	// The walk waits for it: it must be quick.
	OnObject func(Report)
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
	if o.Reason == nil {
		o.Reason = reasonOf
	}
	if o.MaxFailures <= 0 {
		o.MaxFailures = DefaultFailures
	}
	if o.Grace <= 0 {
		o.Grace = defaultGrace
	}
	return o
}

func (o Options) workers() int {
	if o.Limiter != nil {
		return o.Limiter.MaxInFlight()
	}
	return DefaultMaxInFlight
}

// Report is what a walk has done so far. It is a value: a Report that was passed to
// a callback does not change afterwards.
type Report struct {
	Counts godwit.Counts
	// Failures are the first objects that failed, or were deferred for a
	// reason.
	Failures []godwit.Failure
	// Remaining counts the objects not yet passed to the action, as the server
	// reported it; -1 when it did not.
	Remaining int64
	// ResourceVersion is the newest page's.
	ResourceVersion string
	// Cursor is the key of the last object of a page. No object of that page and
	// of the pages before it failed, was deferred, or is under way. Cursor moves
	// back only when the list starts again.
	Cursor string
	// Complete means that the source ended and every object was handled.
	Complete bool
}
