package revisionupgrade

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// TestSchedule: each of many upgrades has its turn, and none is visited before its time unless its spec or a setting of
// its trigger changed.
func TestSchedule(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	s := &schedule{}
	var open []*v1alpha1.ControllerRevisionUpgrade
	for i := range turnUpgrades + 50 {
		one := &v1alpha1.ControllerRevisionUpgrade{}
		one.Namespace, one.UID, one.Generation, one.Status.ObservedGeneration = "shop", types.UID(fmt.Sprint(i)), 1, 1
		open = append(open, one)
	}
	take := func(want int, wait time.Duration) {
		t.Helper()
		turn, got := s.Take("shop", open, clock.Now())
		if len(turn) != want || got != wait {
			t.Fatalf("a turn of %d, and the next one after %v; want %d, %v", len(turn), got, want, wait)
		}
		for _, one := range turn {
			s.Set(one, visit{next: clock.Now().Add(time.Minute), settings: settingsOf(one)})
		}
	}
	take(turnUpgrades, time.Millisecond)
	take(50, time.Minute)
	take(0, time.Minute)
	open[7].Generation++
	take(1, time.Minute)
	open[7].Status.ObservedGeneration++
	inheritSettings(open[8], v1alpha1.ControllerRevisionUpgradeTriggerSpec{LossPolicy: v1alpha1.LossAllow})
	take(1, time.Minute)
	take(0, time.Minute)
	clock.SetTime(clock.Now().Add(time.Minute))
	take(turnUpgrades, time.Millisecond)
	take(50, time.Minute)
	status.Summary{State: status.StateStalled, Reason: decision.ReasonRefused.Name}.Apply(open[9])
	open[9].Status.Phase = v1alpha1.UpgradePhase(revision.Failed)
	take(0, time.Minute)
	open[7].Generation++
	take(2, time.Minute) // a write that was refused alone may be accepted together
	last := visit{next: clock.Now().Add(time.Hour), written: written{"7", 1}}
	s.Set(open[0], last)
	open = open[:1]
	take(0, time.Hour)
	if got := s.Last(open[0]); got != last {
		t.Errorf("the last visit is %+v, want %+v", got, last)
	}
	if n := len(s.visits["shop"]); n != 1 {
		t.Errorf("it remembers %d upgrades that are not open any more", n-1)
	}
	s.Take("shop", nil, clock.Now())
	if len(s.visits) > 0 {
		t.Errorf("it remembers a namespace without upgrades: %v", s.visits)
	}
}

// TestNextVisitWithASkewedClock: the retention ends by the API server's clock. A node whose clock is ahead does not scan each
// second until then.
func TestNextVisitWithASkewedClock(t *testing.T) {
	server := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := revision.Result{Phase: revision.Retained, Item: decision.Item{Reason: decision.ReasonRetained, Until: server.Add(2 * time.Minute)}}
	if got := nextVisit(r, server.Add(5*time.Minute), retryLater); got != retryLater {
		t.Errorf("the node is 5 min ahead, and the next visit is in %v, want %v", got, retryLater)
	}
	if got := nextVisit(r, server, retryLater); got != 2*time.Minute+time.Second {
		t.Errorf("the next visit is in %v, want the end of the retention", got)
	}
}

func TestNextVisit(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(p revision.Phase, reason *godwit.Reason, until time.Time) revision.Result {
		return revision.Result{Phase: p, Item: decision.Item{Reason: reason, Until: until}}
	}
	for name, test := range map[string]struct {
		result revision.Result
		want   time.Duration
	}{
		"retained":                  {at(revision.Retained, decision.ReasonRetained, now.Add(time.Hour)), time.Hour + time.Second},
		"the retention has ended":   {at(revision.Retained, decision.ReasonRetained, now.Add(-time.Minute)), retryLater},
		"retained permanently":      {at(revision.Retained, decision.ReasonKept, time.Time{}), retryRarely},
		"a referrer is not ready":   {at(revision.Retained, decision.ReasonReferrerNotReady, now.Add(-time.Minute)), retryLater},
		"it could not be deleted":   {at(revision.Retained, decision.ReasonUnanswered, now.Add(-time.Minute)), retrySoon},
		"another client changed it": {at(revision.Repointed, decision.ReasonChanged, time.Time{}), retrySoon},
		"a virtual machine runs":    {at(revision.Converted, decision.ReasonRunning, time.Time{}), retryLater},
		"no answer":                 {at(revision.Analyzing, decision.ReasonUnanswered, time.Time{}), retrySoon},
		"user action is required":   {at(revision.Failed, decision.ReasonLossy, time.Time{}), retryRarely},
		"a write was refused":       {at(revision.Failed, decision.ReasonRefused, time.Time{}), retryRarely},
		"a read was refused":        {at(revision.Analyzing, decision.ReasonForbidden, time.Time{}), retryRarely},
		"others keep changing it":   {at(revision.InUse, decision.ReasonChanged, time.Time{}), retryLater},
		"it succeeded":              {at(revision.Succeeded, nil, time.Time{}), 0},
	} {
		if got := nextVisit(test.result, now, retryLater); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
