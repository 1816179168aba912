package walk

import (
	"cmp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
)

const (
	// causeTime is how long the attempts for one object may take. If no object has passed a cause for this time, the
	// walk suspends retries for it. It still retries one object per causeTime, to notice when the cause has ended.
	causeTime = time.Minute

	// maxExhausted is how many objects may use up their attempts. If they do so in a row because of the API server
	// itself, the walk ends. If they do so because of another cause, the walk suspends retries for it.
	maxExhausted = 32

	// maxCauses bounds the memory; further causes share one entry.
	maxCauses = 64
)

// CauseOf is the default of Options.Cause. An internal error concerns the written object: the API server returns it if
// a webhook fails. The API server itself is the cause of other transient errors.
func CauseOf(err error) string {
	if apierrors.IsInternalError(err) {
		return "internal error"
	}
	return ""
}

// reasonOf is the default of Options.Reason.
func reasonOf(err error) *godwit.Reason {
	return &godwit.Reason{Name: cmp.Or(string(apierrors.ReasonForError(err)), "Failed")}
}

// causes has, by name, the causes of failed attempts other than the API server itself. It is not safe for concurrent
// use.
type causes map[string]*cause

type cause struct {
	first, last time.Time // failures since an object got past the cause
	exhausted   int       // objects that used up their attempts for the cause
	probed      time.Time // when an object was last retried in spite of the suspension
}

// fail records a failed attempt. It reports whether the object is retried, and whether the retry is a probe of a
// suspended cause.
func (c causes) fail(name string, now time.Time) (retry, probe bool) {
	at := c.entry(name)
	if at.first.IsZero() || now.Sub(at.last) > causeTime { // an old failure says nothing about now
		*at = cause{first: now}
	}
	at.last = now
	probe = at.suspended()
	if probe && now.Sub(at.probed) < causeTime {
		return false, false
	}
	at.probed = now
	return true, probe
}

// exhaust records an object that has used up its attempts.
func (c causes) exhaust(name string) { c.entry(name).exhausted++ }

// pass records that an object has succeeded after the cause had made it fail.
func (c causes) pass(name string) { delete(c, c.key(name)) }

// suspended reports whether retries for the cause are suspended.
func (c causes) suspended(name string) bool {
	at, ok := c[c.key(name)]
	return ok && at.suspended()
}

func (at *cause) suspended() bool {
	return at.exhausted >= maxExhausted || at.last.Sub(at.first) >= causeTime
}

func (c causes) entry(name string) *cause {
	key := c.key(name)
	if c[key] == nil {
		c[key] = &cause{}
	}
	return c[key]
}

func (c causes) key(name string) string {
	if _, known := c[name]; known || len(c) < maxCauses {
		return name
	}
	return "other causes"
}
