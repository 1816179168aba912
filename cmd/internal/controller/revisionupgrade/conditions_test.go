package revisionupgrade

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

func TestFillKeepsWhatIsNoLongerFound(t *testing.T) {
	item := decision.Item{UID: "a", Version: "v1alpha1", Form: "Object", Target: "v1beta1", Replacement: "new"}
	first := revision.Result{Item: item, Phase: revision.Created, ResourceVersion: "7", Hash: "old", ReplacementUID: "b", ReplacementHash: "new"}
	source := v1alpha1.RevisionSource{UID: "a", Version: "v1alpha1", Form: "Object", Hash: "old", ResourceVersion: "7"}
	replacement := v1alpha1.RevisionReplacement{Name: "new", UID: "b", Version: "v1beta1", Hash: "new"}
	began := v1alpha1.ControllerRevisionUpgradeStatus{Phase: "Created", Source: &source, Replacement: &replacement}
	with := func(change func(*v1alpha1.ControllerRevisionUpgradeStatus)) v1alpha1.ControllerRevisionUpgradeStatus {
		s := *began.DeepCopy()
		change(&s)
		return s
	}
	result := func(change func(*revision.Result)) revision.Result {
		r := first
		change(&r)
		return r
	}
	for name, test := range map[string]struct {
		reason string
		result revision.Result
		want   v1alpha1.ControllerRevisionUpgradeStatus
	}{
		"nothing new": {"what was found first is written once", first, began},
		"written by us": {
			"our own annotations changed its resourceVersion, and no backup has the new one",
			result(func(r *revision.Result) { r.ResourceVersion, r.Phase = "9", revision.Retained }),
			with(func(s *v1alpha1.ControllerRevisionUpgradeStatus) { s.Phase = "Retained" }),
		},
		"the source is deleted": {
			"users compare it with a backup",
			revision.Result{Item: decision.Item{Replacement: "new"}, Phase: revision.Succeeded, ReplacementUID: "b", ReplacementHash: "new"},
			with(func(s *v1alpha1.ControllerRevisionUpgradeStatus) { s.Phase = "Succeeded" }),
		},
		"not read": {
			"without an answer nothing is known about the phase",
			revision.Result{Item: decision.Item{Reason: decision.ReasonUnanswered}, Phase: revision.Analyzing}, began,
		},
		"a referrer runs by now": {
			"the source names the replacement, and the pass read no more of it",
			result(func(r *revision.Result) { r.Phase, r.ReplacementUID, r.ReplacementHash = revision.InUse, "", "" }),
			with(func(s *v1alpha1.ControllerRevisionUpgradeStatus) { s.Phase = "InUse" }),
		},
		"created again": {
			"a replacement of the same name has another UID",
			result(func(r *revision.Result) { r.ReplacementUID = "c" }),
			with(func(s *v1alpha1.ControllerRevisionUpgradeStatus) { s.Replacement.UID = "c" }),
		},
	} {
		got := *began.DeepCopy()
		fill(&got, test.result)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, test.reason, diff)
		}
	}
	var fresh v1alpha1.ControllerRevisionUpgradeStatus
	fill(&fresh, first)
	if diff := cmp.Diff(began, fresh); diff != "" {
		t.Errorf("the first time (-want +got):\n%s", diff)
	}
}

// TestIncompleteScanIsNotDiscovered: a scan that did not read a missing revision again does not say that all revisions were
// scanned.
func TestIncompleteScanIsNotDiscovered(t *testing.T) {
	f := &findings{}
	f.add(decision.Item{Action: decision.Blocked, Reason: decision.ReasonSourceGone})
	trigger := &v1alpha1.ControllerRevisionUpgradeTrigger{}
	setInventory(trigger, f)
	if known := trigger.Status.Conditions; !meta.IsStatusConditionTrue(known, v1alpha1.ConditionDiscovered) {
		t.Errorf("%+v, want Discovered", known)
	}
	if !f.add(decision.Item{Action: decision.Deferred, Reason: decision.ReasonUnconfirmed}) {
		t.Error("the revision gets no upgrade, which reads it again")
	}
	setInventory(trigger, f)
	now := meta.FindStatusCondition(trigger.Status.Conditions, v1alpha1.ConditionDiscovered)
	if now.Status != metav1.ConditionFalse || now.Reason != decision.ReasonUnconfirmed.Name || !strings.Contains(now.Message, "did not find 1 revision") {
		t.Errorf("%+v, want it False (%s)", now, decision.ReasonUnconfirmed)
	}
	if f.counts.Deferred != 1 {
		t.Errorf("%+v, want 1 Deferred, so that the trigger is not Ready", f.counts)
	}
}
