package upgrade_test

import (
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/test/fault"
)

// slowClock makes every scan too old by the time it is used.
type slowClock struct{ *testclock.FakePassiveClock }

func (c slowClock) Now() time.Time {
	c.SetTime(c.FakePassiveClock.Now().Add(revision.MaxScanAge))
	return c.FakePassiveClock.Now()
}

// TestSourceIsReadLiveWhereTheScanIsOld, and only there: a scan of a moment ago has read it with its data.
func TestSourceIsReadLiveWhereTheScanIsOld(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		slow bool
		want int
	}{
		"scan of a moment ago": {want: 0},
		"old scan":             {slow: true, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newNamespace(t)
			y.machine("web", both, instancetype, preference)
			reads := &seen{pick: readsARevision}
			u := y.watched(reads, y.clock)
			if test.slow {
				u = y.watched(reads, slowClock{y.clock})
			}
			results := y.pass(u)
			y.mustBe(results, instancetype.RevisionName("web"), revision.Retained, revision.ReasonRetained)
			y.mustBe(results, preference.RevisionName("web"), revision.Retained, revision.ReasonRetained)
			if reads.count != test.want {
				t.Errorf("%d live reads of revisions, want %d", reads.count, test.want)
			}
		})
	}
}

// TestUpgradedAndRolledBackSinceTheScan by another client, before any of our writes: the rollback stays. What our scan read
// says nothing of it.
func TestUpgradedAndRolledBackSinceTheScan(t *testing.T) {
	t.Parallel()
	source := instancetype.RevisionName("web")
	for at := range 4 {
		y := newNamespace(t)
		y.machine("web", both, instancetype)
		w := &fault.Transport{Before: func(n int) {
			if n != at {
				return
			}
			y.run(revision.Policy{})
			if r := y.advance(revision.Policy{}, revision.Request{Name: source, Rollback: true}); r.Phase != revision.RolledBack {
				t.Errorf("the rollback is %s (%s: %s)", r.Phase, r.Reason, r.Message)
			}
		}}
		results, err := y.disturbed(w, revision.Policy{}).Advance(t.Context(), y.namespace, []revision.Request{{Name: source}})
		y.must(results, err)
		if at == 0 && results[0].Phase != revision.RolledBack {
			t.Errorf("rolled back before the first write, it is %s (%s: %s)", results[0].Phase, results[0].Reason, results[0].Message)
		}
		if y.revisions()[source].Annotations[revision.RolledBackAnnotation] == "" {
			t.Errorf("before write %d: nothing says any more that it was rolled back", at)
		}
		if at == 0 {
			y.mustRefer(machines, "web", map[string]string{inSpec: source, inStatus: source})
		}
		y.mustResolve()
	}
}
