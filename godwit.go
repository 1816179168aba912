// Package godwit has the types that every migration shares: the outcome of one
// object ([Outcome]), the outcomes of all objects ([Counts], [Failure]), what
// keeps a migration from starting ([Blocker]), what the user should know before
// it starts ([Warning]), and what to do about both ([Fix]).
//
// It does no I/O and depends on nothing. Other packages build on it: walk acts on
// objects page by page, crdmigrator rewrites custom resources at the storage
// version.
package godwit

import "fmt"

// Outcome is the outcome of one object. The action that handled the object decides
// it, because a conflict means one thing to a rewrite and another to a cleanup.
type Outcome uint8

const (
	// Migrated means that the object was written and its resourceVersion changed.
	Migrated Outcome = iota + 1
	// Unchanged means that the write was sent and the API server elided it, which
	// proves that the stored bytes already equal the current encoding.
	Unchanged
	// Skipped means that nothing was sent, because earlier evidence proves that the
	// object needs no write.
	Skipped
	// Gone means that the object no longer exists.
	Gone
	// Deferred means that the object is left for a later pass.
	Deferred
	// Failed means that the object is not written in this pass; a [Failure] has the
	// reason.
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

// Counts counts outcomes.
type Counts struct {
	// Migrated objects were written.
	Migrated int64 `json:"migrated"`
	// Unchanged objects needed no change.
	Unchanged int64 `json:"unchanged"`
	// Skipped objects needed no request.
	Skipped int64 `json:"skipped"`
	// Gone objects no longer exist.
	Gone int64 `json:"gone"`
	// Deferred objects are left for a later pass.
	Deferred int64 `json:"deferred"`
	// Failed objects were not written in this pass.
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

// Settled reports whether no object is left, deferred or failed.
func (c Counts) Settled() bool { return c.Deferred == 0 && c.Failed == 0 }

// Failure names one object that failed or was deferred, and the reason.
type Failure struct {
	// Namespace of the object, empty if it has none.
	Namespace string `json:"namespace"`
	// Name of the object.
	Name string `json:"name"`
	// Reason is a documented CamelCase constant.
	Reason string `json:"reason"`
	// Message says what happened, in the words of the API server where it answered.
	Message string `json:"message"`
}

// String is the reason and the message.
func (f Failure) String() string { return f.Reason + ": " + f.Message }

// Blocker is a condition under which a migration must not start.
type Blocker struct {
	// Reason is a documented CamelCase constant of the package that found it.
	Reason string
	// Message names the object and the cause.
	Message string
	// Fix is what to do about it.
	Fix Fix
}

// Warning is what the user should know before a migration starts. It does not keep
// the migration from starting.
type Warning Blocker
