package revisionupgrade

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// TestPendingRollbackIsNoRollback: the failure of a rollback that has not ended says what it waits for, and how to end it.
func TestPendingRollbackIsNoRollback(t *testing.T) {
	i := decision.Item{Namespace: "shop", Name: "old", RolledBack: time.Unix(1, 0), Reason: decision.ReasonRollbackPending, Message: "VirtualMachine web refers to new"}
	l := tally{}
	l.addRolledBack("shop", "old", candidateFor(i).pending)
	if l.counts.Blocked != 1 || len(l.failures) != 1 {
		t.Fatalf("%+v", l)
	}
	want := "VirtualMachine web refers to new; stop the virtual machine if it runs, and run the rollback again: godwit revision rollback old -n shop"
	if got := l.failures[0].Message; got != want || l.failures[0].Reason != "RollbackPending" {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestUpgradeOfANewerReleaseNeedsAUser: it is under way for that release alone, so a trigger does not wait for it.
func TestUpgradeOfANewerReleaseNeedsAUser(t *testing.T) {
	one := &v1alpha1.ControllerRevisionUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one", Annotations: map[string]string{format.Annotation: "2"}}}
	one.Spec.TargetName = "old"
	for phase, want := range map[revision.Phase]v1alpha1.RevisionCounts{
		"": {Failed: 1}, revision.Converted: {Failed: 1}, revision.InUse: {Failed: 1}, revision.Failed: {Failed: 1},
		revision.Succeeded: {Relabelled: 1}, revision.Retained: {Succeeded: 1},
	} {
		one.Status.Phase = v1alpha1.UpgradePhase(phase)
		l := tally{}
		l.add(one)
		if l.counts != want || len(l.failures) != int(want.Failed) {
			t.Errorf("in phase %q: %+v, %+v, want %+v", phase, l.counts, l.failures, want)
		}
		for _, f := range l.failures {
			if want := `controllerrevisionupgrade shop/one has format "2"`; f.Name != "old" || f.Reason != decision.ReasonNewerFormat.Name || !strings.Contains(f.Message, want) || !strings.HasSuffix(f.Message, format.Do) {
				t.Errorf("in phase %q: %+v does not say %s", phase, f, want)
			}
		}
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
		"no limit of writes": {0, nil, []string{"limits.maxWritesPerSecond of the manager is 0, which means no limit", "10 upgrades at once"}},
	} {
		v := (&Triggers{MaxWritesPerSecond: test.writes}).upgrading(v1alpha1.ControllerRevisionUpgradeTriggerSpec{MaxConcurrent: test.concurrent})
		for _, want := range test.want {
			if v.State != status.StateReconciling || !strings.Contains(v.Message, want) {
				t.Errorf("%s: %q does not say %q", name, v.Message, want)
			}
		}
	}
}
