package revisionupgrade

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/revision"
)

// TestPendingRollbackIsNoRollback: the failure of a rollback that has not ended says what it waits for, and how to end it.
func TestPendingRollbackIsNoRollback(t *testing.T) {
	i := revision.Item{Namespace: "shop", Name: "old", RolledBack: time.Unix(1, 0), Reason: revision.ReasonRollbackPending, Message: "VirtualMachine web refers to new"}
	l := tally{}
	l.addRolledBack("shop", "old", candidateFor(i).pending)
	if l.counts.Blocked != 1 || len(l.failures) != 1 {
		t.Fatalf("%+v", l)
	}
	want := "RollbackPending: VirtualMachine web refers to new; stop the virtual machine if it runs, and run the rollback again: godwit revision rollback old -n shop"
	if got := l.failures[0].String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestUpgradingNamesItsLimits: a user who waits for thousands of upgrades learns the limits, and the keys that change them.
func TestUpgradingNamesItsLimits(t *testing.T) {
	for name, test := range map[string]struct {
		writes     float64
		concurrent *int32
		want       []string
	}{
		"by default":         {20, nil, []string{"limits.maxWritesPerSecond of the manager allows 20 writes per second", "spec.maxConcurrent 10 upgrades at once"}},
		"by a trigger":       {7.5, new(int32(3)), []string{"allows 7.5 writes per second", "spec.maxConcurrent 3 upgrades at once"}},
		"no limit of writes": {0, nil, []string{"limits.maxWritesPerSecond of the manager is 0, which is no limit", "10 upgrades at once"}},
	} {
		v := (&Triggers{MaxWritesPerSecond: test.writes}).upgrading(v1alpha1.ControllerRevisionUpgradeTriggerSpec{MaxConcurrent: test.concurrent})
		for _, want := range test.want {
			if v.State != status.StateReconciling || !strings.Contains(v.Message, want) {
				t.Errorf("%s: %q does not say %q", name, v.Message, want)
			}
		}
	}
}
