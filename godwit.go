// Package godwit has the types that all migrations share: the outcome of one object ([Outcome]), the outcomes of all
// objects ([Counts], [Failure]), the problems that a plan, a check or a run has found ([Finding]), their reasons
// ([Reason]), and their fixes ([Fix]).
//
// It does no I/O and depends on nothing. Other packages build on it: walk acts on
// objects page by page, crdmigrator rewrites custom resources at the storage
// version.
package godwit

import "fmt"

// Outcome is the outcome of one object. The action on the object decides it: a conflict means one thing to a rewrite
// and another to a cleanup.
type Outcome uint8

const (
	// Migrated means that the object was written and its resourceVersion changed.
	Migrated Outcome = iota + 1
	// Unchanged means that the write was sent and the API server elided it, which
	// proves that the stored bytes already equal the current encoding.
	Unchanged
	// Skipped means that no request was sent, because earlier evidence proves that the object needs no write.
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

// Total returns the number of counted objects.
func (c Counts) Total() int64 {
	return c.Migrated + c.Unchanged + c.Skipped + c.Gone + c.Deferred + c.Failed
}

// Settled reports whether no object is deferred or failed.
func (c Counts) Settled() bool { return c.Deferred == 0 && c.Failed == 0 }

// Failure is an object that failed or was deferred, and the reason.
type Failure struct {
	// Namespace of the object, empty if it has none.
	Namespace string `json:"namespace"`
	// Name of the object.
	Name string `json:"name"`
	Finding
	// Err is the error that the finding classifies, for programs; nil where a stored state has the failure.
	Err error `json:"-"`
}

// String returns "reason: message".
func (f Failure) String() string { return f.Line() }
