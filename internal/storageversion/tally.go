package storageversion

import (
	"cmp"
	"slices"
	"sync"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

// sideTally is a Tally under construction.
type sideTally struct {
	maxFailures int // 0 means walk.DefaultFailures

	mu    sync.Mutex
	tally decision.Tally
	// expected are the results of cleanups of objects that the walk will visit again. The
	// last result of an object counts, once the walk is done with it. The walk bounds how
	// many objects wait, and with them the size of the map.
	expected map[string]cleanupResult
}

type cleanupResult struct {
	object  walk.Object
	outcome godwit.Outcome
	why     error
}

// count adds a cleanup to the tally. The caller holds the lock.
func (s *sideTally) count(c cleanupResult) {
	s.tally.Counts.Add(c.outcome)
	if c.why != nil && len(s.tally.Failures) < cmp.Or(s.maxFailures, walk.DefaultFailures) {
		s.tally.Failures = append(s.tally.Failures, godwit.Failure{
			Namespace: c.object.GetNamespace(), Name: c.object.GetName(),
			Finding: godwit.Finding{Reason: FailureReason(c.why), Message: c.why.Error()}, Err: c.why,
		})
	}
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
	s.count(cleanupResult{o, outcome, why})
}

// end counts the expected result of an object that the walk does not visit again.
func (s *sideTally) end(o walk.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.expected) == 0 {
		return
	}
	key := walk.Key(o)
	if v, ok := s.expected[key]; ok {
		delete(s.expected, key)
		s.count(v)
	}
}

// report is the tally so far, without the expected results.
func (s *sideTally) report() decision.Tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	return decision.Tally{Counts: s.tally.Counts, Failures: slices.Clip(s.tally.Failures)}
}
