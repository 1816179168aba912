package revisionupgrade

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// TestUpgradeName: the API server accepts the name, for a revision with a name of any length and with dots anywhere.
func TestUpgradeName(t *testing.T) {
	const uid = "5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102"
	if got := UpgradeName("web-u1.medium-1", uid); got != "web-u1.medium-1-5d0c2cf4" {
		t.Error(got)
	}
	if got := UpgradeName("web-u1.medium-1", ""); got != "web-u1.medium-1-gone" {
		t.Error(got)
	}
	for cut := 240; cut < 248; cut++ {
		got := UpgradeName(strings.Repeat("a", cut)+"."+strings.Repeat("b", 252-cut), uid)
		if why := validation.IsDNS1123Subdomain(got); len(why) > 0 || !strings.HasSuffix(got, "-5d0c2cf4") {
			t.Errorf("%s: %v", got, why)
		}
	}
}

// TestEnsureWithoutMissingUpgrades: each revision that a scan finds has an upgrade, or was rolled back. The pass creates nothing,
// and writes no status.
func TestEnsureWithoutMissingUpgrades(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	trigger := &v1alpha1.ControllerRevisionUpgradeTrigger{ObjectMeta: metav1.ObjectMeta{Name: "all", UID: "trigger"}}
	trigger.Status.Counts = &v1alpha1.RevisionCounts{Discovered: 2, Succeeded: 1, Blocked: 1}
	status.Summary{State: status.StateReady, Reason: ReasonSourcesRetained.Name, Message: "retained"}.Apply(trigger)
	upgrade := upgradeFor(trigger, candidate{namespace: "shop", name: "old", uid: "5d0c2cf4"})
	upgrade.Status.Phase = v1alpha1.UpgradePhase(revision.Retained)
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(trigger, upgrade).WithStatusSubresource(trigger).Build()
	recorder := events.NewFakeRecorder(10)
	triggers := &Triggers{Client: c, Reader: c, Recorder: recorder, Clock: testingclock.NewFakePassiveClock(time.Unix(1, 0))}
	for range 2 {
		now := &v1alpha1.ControllerRevisionUpgradeTrigger{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(trigger), now); err != nil {
			t.Fatal(err)
		}
		before, p := now.DeepCopy(), triggers.newPass(now)
		candidates := []candidate{{namespace: "shop", name: "back", rolledBack: true}, {namespace: "shop", name: "old", uid: "5d0c2cf4", retained: true}}
		if err := p.ensure(t.Context(), candidates); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before.Status, now.Status); diff != "" || p.unseen != 0 || p.others.counts.Blocked != 1 {
			t.Errorf("%d upgrades were created, %+v of others, status (-before +after):\n%s", p.unseen, p.others.counts, diff)
		}
	}
	select {
	case e := <-recorder.Events:
		t.Errorf("an event: %s", e)
	default:
	}
}

// TestUpgradesOfRevisionsAtRiskComeFirst: KubeVirt deletes their revisions when it starts.
func TestUpgradesOfRevisionsAtRiskComeFirst(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	e := &ensurer{client: fake.NewClientBuilder().WithScheme(scheme).Build(), trigger: &v1alpha1.ControllerRevisionUpgradeTrigger{}}
	x, err := e.find(t.Context(), []candidate{
		candidateFor(decision.Item{Namespace: "a", Name: "one"}), candidateFor(decision.Item{Namespace: "a", Name: "two", AtRisk: true}),
		candidateFor(decision.Item{Namespace: "b", Name: "three"}), candidateFor(decision.Item{Namespace: "b", Name: "four", AtRisk: true}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range x.missing {
		names = append(names, m.name)
	}
	if want := []string{"two", "four", "one", "three"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}
