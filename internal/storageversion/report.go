package storageversion

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/walk"
)

// Tally is what became of a job that is done beside the rewrite.
type Tally struct {
	Counts godwit.Counts
	// Failures are the first objects that failed or were deferred.
	Failures []godwit.Failure
}

func (t *Tally) add(v cleanupResult) {
	t.Counts.Add(v.outcome)
	if v.why != nil && len(t.Failures) < walk.DefaultFailures {
		t.Failures = append(t.Failures, godwit.Failure{
			Namespace: v.object.GetNamespace(), Name: v.object.GetName(),
			Finding: godwit.Finding{Reason: FailureReason(v.why), Message: v.why.Error()},
		})
	}
}

// sideTally is a Tally under construction.
type sideTally struct {
	mu    sync.Mutex
	tally Tally
	// expected are the cleanups of objects that are to be visited again. They count
	// as they were last seen when the walk is done with the object. No more objects
	// are in here than the walk lets wait.
	expected map[string]cleanupResult
}

type cleanupResult struct {
	object  walk.Object
	outcome godwit.Outcome
	why     error
}

func (s *sideTally) expect(o walk.Object, outcome godwit.Outcome, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expected == nil {
		s.expected = map[string]cleanupResult{}
	}
	s.expected[walk.Key(o)] = cleanupResult{o, outcome, why}
}

func (s *sideTally) add(o walk.Object, outcome godwit.Outcome, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.expected, walk.Key(o))
	s.tally.add(cleanupResult{o, outcome, why})
}

// end counts what is expected of an object that is not visited again.
func (s *sideTally) end(o walk.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.expected) == 0 {
		return
	}
	key := walk.Key(o)
	if v, ok := s.expected[key]; ok {
		delete(s.expected, key)
		s.tally.add(v)
	}
}

// report is the tally so far, without what is still expected.
func (s *sideTally) report() Tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Tally{Counts: s.tally.Counts, Failures: slices.Clip(s.tally.Failures)}
}

// Report is what a run has done so far.
type Report struct {
	// Storage is the tally of the rewrite. It alone gates the trim.
	Storage walk.Report
	// Candidates is the tally of the objects that an embedder's cache offered,
	// before all objects were listed and counted in Storage.
	Candidates walk.Report
	// ManagedFields is the tally of the cleanup, of objects that needed one.
	// Migrated means cleaned.
	ManagedFields Tally
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

// Err says what a complete pass has left behind, the gravest first: objects that
// failed, then [ErrConflicts], then managedFields that were not cleaned. Only the
// last of them is compatible with Trimmed.
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

func first(failures []godwit.Failure) string {
	if len(failures) == 0 {
		return ""
	}
	f := failures[0]
	return fmt.Sprintf(", the first: %s: %s", strings.TrimPrefix(f.Namespace+"/"+f.Name, "/"), f.Message)
}

// progress tells the caller of Run how far the pass is, one call at a time.
type progress struct {
	requests atomic.Int64
	listener func(Report)
	mu       sync.Mutex
	now      Report // of the pass under way
}

func newProgress(listener func(Report)) *progress { return &progress{listener: listener} }

// begin starts the report of another pass. Nothing has happened yet, so that the caller
// is not told.
func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Storage.Remaining = -1
}

func (p *progress) tell(update func(*Report)) {
	if p.listener == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	update(&p.now)
	p.now.Requests = p.requests.Load()
	p.listener(p.now)
}
