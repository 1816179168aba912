package revisionupgrade

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/revision"
)

// TestTurns: of many upgrades each has its turn, none is looked at before its time, and
// one whose spec has changed is looked at whatever its time.
func TestTurns(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	u := &Upgrades{Clock: clock}
	var open []*v1alpha1.ControllerRevisionUpgrade
	for i := range turnUpgrades + 50 {
		one := &v1alpha1.ControllerRevisionUpgrade{}
		one.Namespace, one.UID, one.Generation, one.Status.ObservedGeneration = "shop", types.UID(fmt.Sprint(i)), 1, 1
		open = append(open, one)
	}
	look := func(n int, wait time.Duration) {
		t.Helper()
		turn, pause := u.turn("shop", open)
		if len(turn) != n || pause != wait {
			t.Fatalf("it is the turn of %d, and then after %v; want %d, %v", len(turn), pause, n, wait)
		}
		for _, one := range turn {
			u.lookAgain(one, clock.Now().Add(time.Minute))
		}
	}
	look(turnUpgrades, time.Millisecond)
	look(50, time.Minute)
	look(0, time.Minute)
	open[7].Generation++
	look(1, time.Minute)
	open[7].Status.ObservedGeneration++
	clock.SetTime(clock.Now().Add(time.Minute))
	look(turnUpgrades, time.Millisecond)
	look(50, time.Minute)
	status.Summary{State: status.StateStalled, Reason: revision.ReasonRefused}.Apply(open[9])
	look(0, time.Minute)
	open[7].Generation++
	look(2, time.Minute) // what was refused alone may be taken together
	open = open[:1]
	u.turn("shop", open)
	if n := len(u.next["shop"]); n != 1 {
		t.Errorf("%d upgrades that are gone are kept", n-1)
	}
	u.turn("shop", nil)
	if len(u.next) > 0 {
		t.Errorf("a namespace without upgrades is kept: %v", u.next)
	}
}
