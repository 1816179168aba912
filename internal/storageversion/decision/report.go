package decision

import (
	"fmt"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/walk"
)

// Tally is the result of a job beside the rewrite: the cleanup of managedFields.
type Tally struct {
	Counts godwit.Counts
	// Failures are the first objects that failed or were deferred.
	Failures []godwit.Failure
}

// Report is what a run has done so far.
type Report struct {
	// Storage is the tally of the rewrite. It alone gates the trim.
	Storage walk.Report
	// Candidates is the tally of the objects of an embedder's cache, which a run
	// rewrites before it lists all objects. Storage counts them again.
	Candidates walk.Report
	// ManagedFields is the tally of the cleanup, of objects that needed one.
	// Migrated means cleaned.
	ManagedFields Tally
	// RoundTrips is the tally of the objects that were tried before the first write, to prove that a rewrite keeps each value.
	RoundTrips walk.Report
	// Waiting is the answer, in the API server's words, after which the pass tries
	// again; empty while it continues.
	Waiting string
	// Requests counts what was sent to the API server for this run.
	Requests int64
	// Trimmed means that this run made the storage version the only stored one.
	Trimmed bool
	// Checkpoint is what the journal holds.
	Checkpoint evidence.Checkpoint
}

// Err returns what a complete pass has left behind, the gravest first: objects that
// failed, then [ErrConflicts], then managedFields that were not cleaned. Only after
// the last of them can Trimmed be true.
func (r Report) Err() error {
	storage, fields := r.Storage.Counts, r.ManagedFields.Counts
	switch {
	case storage.Failed > 0:
		return fmt.Errorf("%d of %d objects failed%s", storage.Failed, storage.Total(), first(r.Storage.Failures))
	case storage.Deferred > 0:
		return fmt.Errorf("%w: %d of %d objects%s", ErrConflicts, storage.Deferred, storage.Total(), first(r.Storage.Failures))
	case !fields.Settled():
		return fmt.Errorf("managedFields of %d objects were not cleaned%s", fields.Failed+fields.Deferred, first(r.ManagedFields.Failures))
	}
	return nil
}
