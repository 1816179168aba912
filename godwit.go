// Package godwit holds the nouns that every migration shares: what became of
// one object ([Outcome]), what became of all of them ([Counts], [Failure]) and
// what keeps a migration from starting ([Blocker]) or should be known before
// ([Warning]).
//
// It does no I/O and depends on nothing. The packages that move things build
// on it: walk acts on objects page by page, crdmigrator carries custom
// resources across API versions.
package godwit

import "fmt"

// Outcome says what became of one object. The action that handled the object
// decides it, because a conflict means one thing to a rewrite and another to a
// cleanup.
type Outcome uint8

const (
	// Migrated: the object was written and its resourceVersion moved.
	Migrated Outcome = iota + 1
	// Unchanged: the write was sent and the API server elided it, which
	// proves that the stored bytes already equal the current encoding.
	Unchanged
	// Skipped: nothing was sent, since earlier evidence settles the object.
	Skipped
	// Gone: the object no longer exists.
	Gone
	// Deferred: left for a later pass, for a reason that time may cure.
	Deferred
	// Failed: given up in this pass; the failure sample says why.
	Failed
)

var outcomeNames = [...]string{
	Migrated:  "Migrated",
	Unchanged: "Unchanged",
	Skipped:   "Skipped",
	Gone:      "Gone",
	Deferred:  "Deferred",
	Failed:    "Failed",
}

func (o Outcome) String() string {
	if o >= Migrated && int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// Counts is an exact tally of outcomes.
type Counts struct {
	// Migrated objects were written.
	Migrated int64 `json:"migrated"`
	// Unchanged objects were found to be as they should.
	Unchanged int64 `json:"unchanged"`
	// Skipped objects needed no request.
	Skipped int64 `json:"skipped"`
	// Gone objects no longer exist.
	Gone int64 `json:"gone"`
	// Deferred objects are left for a later pass.
	Deferred int64 `json:"deferred"`
	// Failed objects were given up in this pass.
	Failed int64 `json:"failed"`
}

// Add counts one object. An outcome outside the constants is counted as
// Failed, so that no object is ever missing from the total.
func (c *Counts) Add(o Outcome) {
	switch o {
	case Migrated:
		c.Migrated++
	case Unchanged:
		c.Unchanged++
	case Skipped:
		c.Skipped++
	case Gone:
		c.Gone++
	case Deferred:
		c.Deferred++
	default:
		c.Failed++
	}
}

// Total is the number of objects counted.
func (c Counts) Total() int64 {
	return c.Migrated + c.Unchanged + c.Skipped + c.Gone + c.Deferred + c.Failed
}

// Settled reports whether no object is left to do.
func (c Counts) Settled() bool { return c.Deferred == 0 && c.Failed == 0 }

// Failure names one object that was not settled and why, in words a person
// can act on.
type Failure struct {
	// Namespace of the object, empty if it has none.
	Namespace string `json:"namespace"`
	// Name of the object.
	Name string `json:"name"`
	// Reason is why, in the API server's words where there are any.
	Reason string `json:"reason"`
}

// Blocker is a condition under which a migration must not start.
type Blocker struct {
	// Reason is a documented CamelCase constant of the package that found it.
	Reason string `json:"reason"`
	// Message names the object and the cause.
	Message string `json:"message"`
	// Remedy is the next step, a command where there is one.
	Remedy string `json:"remedy"`
}

// Warning is what a person should know before a migration starts, and what does
// not keep it from starting. Its fields are those of a [Blocker].
type Warning struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
}
