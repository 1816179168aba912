package walk

import (
	"context"
	"time"

	"github.com/godwit-dev/godwit"
)

// Object has the methods of an object that a walk needs. Every Kubernetes object implements it.
type Object interface {
	GetNamespace() string
	GetName() string
}

// Key returns namespace/name, or the name alone for a cluster-scoped object. Keys compare byte by byte, which is the
// order of the API server's storage.
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

// UnfinishedError is returned by an action whose outcome is final, but that has other work left on the object. Run
// keeps the outcome, and retries the object as after any error. The action itself must report work that is left after
// the last attempt.
type UnfinishedError struct {
	// Cause is the error that decides whether the object is retried.
	Cause error
}

func (e *UnfinishedError) Error() string { return e.Cause.Error() }

func (e *UnfinishedError) Unwrap() error { return e.Cause }

const (
	// DefaultFailures is how many failures a report has: enough to see the pattern, and bounded.
	DefaultFailures = 20

	// defaultGrace is how long started objects may take after a walk is stopped: several times an ordinary write, and
	// less than the 30 s of a pod's termination grace period.
	defaultGrace = 10 * time.Second
)

// Options tune [Run]. The zero value works.
type Options struct {
	// Limiter bounds the objects that are handled at once to its MaxInFlight. It does not pace them itself: the
	// requests of the action must go through its RoundTripper. Nil means DefaultMaxInFlight objects at once.
	Limiter *Limiter
	// Attempts bounds the attempts for one object; 0 means DefaultAttempts.
	Attempts int
	// Retry decides whether an object is retried after an action's error, and returns the shortest wait; nil means
	// [Transient].
	Retry func(error) (time.Duration, bool)
	// Cause returns the name of a cause that affects only some objects, such as a webhook. It returns empty for the API
	// server itself, and for the network. Nil means [CauseOf].
	Cause func(error) string
	// Reason returns the reason of a [godwit.Failure] for an error. Nil means the reason of the API server's answer,
	// such as Conflict, and Failed for other errors. These reasons are not declared in a catalog: compare their names.
	Reason func(error) *godwit.Reason
	// MaxFailures bounds the failures a report names; 0 means DefaultFailures.
	MaxFailures int
	// Grace is how long started objects may take after the walk is stopped, by its context or otherwise; 0 means 10
	// seconds. The action's context ends only after this time, so that writes that were sent are counted.
	Grace time.Duration
	// OnPage is called before each page is acted on. Its error stops the walk,
	// and Run returns it.
	OnPage func(context.Context, Report) error
	// OnEnd is called with each finished object, one call at a time, before OnObject. The walk waits for it: it must be
	// quick.
	OnEnd func(Object)
	// OnObject is called after each finished object, one call at a time. The walk waits for it: it must be quick.
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

// Report is the progress of a walk. It is a value: a Report that was passed to a callback does not change afterwards.
type Report struct {
	Counts godwit.Counts
	// Failures are the first objects that failed, or were deferred with an error.
	Failures []godwit.Failure
	// Remaining counts the objects that are not in Counts yet, as the server reported it; -1 when it did not. Together they stay
	// the same while no object is created or deleted.
	Remaining int64
	// ResourceVersion is the resourceVersion of the newest page.
	ResourceVersion string
	// Cursor is the key of the last object of a page. All objects of this page and of the earlier pages are finished,
	// and none failed or was deferred. Cursor moves back only when the list starts again.
	Cursor string
	// Complete means that the source ended and every object was handled.
	Complete bool
}
