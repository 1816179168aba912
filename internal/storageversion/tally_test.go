package storageversion

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

func TestSideTally(t *testing.T) {
	conflict := errors.New("conflict")
	failure := func(name string) godwit.Failure {
		return godwit.Failure{Namespace: "ns", Name: name, Finding: godwit.Finding{Reason: decision.ReasonFailed, Message: "conflict"}, Err: conflict}
	}
	cases := map[string]struct {
		reason string
		visits visits
		during godwit.Counts
		want   decision.Tally
	}{
		"one visit": {
			reason: "it counts at once",
			visits: func(s *sideTally) { s.add(listed("a"), godwit.Migrated, nil) },
			during: godwit.Counts{Migrated: 1},
			want:   decision.Tally{Counts: godwit.Counts{Migrated: 1}},
		},
		"visited again": {
			reason: "an object counts once, as it was seen last",
			visits: func(s *sideTally) {
				s.expect(listed("a"), godwit.Deferred, conflict)
				s.expect(listed("a"), godwit.Deferred, conflict)
				s.add(listed("a"), godwit.Migrated, nil)
			},
			during: godwit.Counts{Migrated: 1},
			want:   decision.Tally{Counts: godwit.Counts{Migrated: 1}},
		},
		"never visited again": {
			reason: "its attempts were used up: what is known of it counts in the end, not before",
			visits: func(s *sideTally) {
				s.expect(listed("a"), godwit.Migrated, nil)
				s.expect(listed("a"), godwit.Deferred, conflict)
			},
			want: decision.Tally{Counts: godwit.Counts{Deferred: 1}, Failures: []godwit.Failure{failure("a")}},
		},
		"several that do not come": {
			reason: "they count in the order of their keys, whichever was seen first",
			visits: func(s *sideTally) {
				s.expect(listed("b"), godwit.Failed, conflict)
				s.expect(listed("c"), godwit.Migrated, nil)
				s.expect(listed("a"), godwit.Deferred, conflict)
				s.add(listed("d"), godwit.Failed, conflict)
			},
			during: godwit.Counts{Failed: 1},
			want: decision.Tally{
				Counts:   godwit.Counts{Migrated: 1, Deferred: 1, Failed: 2},
				Failures: []godwit.Failure{failure("d"), failure("a"), failure("b")},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.visits.mustEndIn(t, tc.during, tc.want, tc.reason)
		})
	}
}

// visits are what a pass tells its tally.
type visits func(*sideTally)

func (v visits) mustEndIn(t *testing.T, during godwit.Counts, want decision.Tally, reason string) {
	t.Helper()
	s := &sideTally{}
	v(s)
	if got := s.report().Counts; got != during {
		t.Errorf("before the end: %+v, want %+v: %s", got, during, reason)
	}
	for _, name := range []string{"a", "b", "c", "d", "a", "b", "c", "d"} { // nothing may count twice
		s.end(listed(name))
	}
	if diff := cmp.Diff(want, s.report(), cmpopts.EquateErrors()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", reason, diff)
	}
}

// TestSideTallyBoundsItsSample: counts are exact, names are not for ever.
func TestSideTallyBoundsItsSample(t *testing.T) {
	s := &sideTally{}
	for i := range walk.DefaultFailures {
		s.add(listed(fmt.Sprintf("w-%04d", i)), godwit.Failed, errors.New("denied"))
	}
	full := s.report()
	s.add(listed("one-more"), godwit.Failed, errors.New("denied"))
	s.expect(listed("expected"), godwit.Deferred, errors.New("conflict"))
	s.end(listed("expected"))
	if len(s.expected) != 0 {
		t.Errorf("%d objects are still expected: the memory grows with the objects that fail", len(s.expected))
	}
	if got := s.report(); !cmp.Equal(got.Failures, full.Failures, cmpopts.EquateErrors()) || len(full.Failures) != walk.DefaultFailures {
		t.Errorf("%d failures are named, and %d later, want the first %d", len(full.Failures), len(got.Failures), walk.DefaultFailures)
	}
	if want := (godwit.Counts{Failed: walk.DefaultFailures + 1, Deferred: 1}); s.report().Counts != want {
		t.Errorf("counts are %+v, want %+v", s.report().Counts, want)
	}
}

func listed(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}
