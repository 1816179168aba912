package walk

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// causeTime is how long the attempts for one object may take. A walk gives up
	// a cause that no object has got past for that long, and then tries one object
	// in that time again, to notice when the cause is gone.
	causeTime = time.Minute

	// maxCauses bounds the memory; further causes share one entry.
	maxCauses = 64
)

// CauseOf is the default of Options.Cause. An internal error is about the object
// that was written: the API server answers so when a webhook fails. Any other
// fault that may pass is the API server's own.
func CauseOf(err error) string {
	if apierrors.IsInternalError(err) {
		return "internal error"
	}
	return ""
}

// causes are what made attempts fail and is not the API server itself. It is
// not safe for concurrent use.
type causes map[string]*cause

type cause struct {
	first, last time.Time // failures since an object got past it
	usedUp      int       // objects that used up their attempts for it
	probed      time.Time // when an object was last tried again although it is given up
}

// meet notes an attempt that failed, and reports whether the object is tried
// again; as a probe where the cause is given up.
func (c causes) meet(name string, now time.Time) (again, probe bool) {
	at := c.entry(name)
	if at.first.IsZero() || now.Sub(at.last) > causeTime { // what failed long ago says nothing about now
		*at = cause{first: now}
	}
	at.last = now
	probe = at.givenUp()
	if probe && now.Sub(at.probed) < causeTime {
		return false, false
	}
	at.probed = now
	return true, probe
}

// useUp notes an object that used up its attempts.
func (c causes) useUp(name string) { c.entry(name).usedUp++ }

// pass notes that an object got past a cause that it met before.
func (c causes) pass(name string) { delete(c, c.key(name)) }

func (c causes) givenUp(name string) bool {
	at, ok := c[c.key(name)]
	return ok && at.givenUp()
}

func (at *cause) givenUp() bool {
	return at.usedUp >= maxExhausted || at.last.Sub(at.first) >= causeTime
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
