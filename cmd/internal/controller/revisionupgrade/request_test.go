package revisionupgrade

import (
	"testing"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/revision/decision"
)

// TestRequestIsAboutTheRevisionThatWasFound: an upgrade by name is not about another revision that has the name later.
func TestRequestIsAboutTheRevisionThatWasFound(t *testing.T) {
	one := &v1alpha1.ControllerRevisionUpgrade{}
	if got := requestFor(one).UID; got != "" {
		t.Errorf("no revision was found, and the request is about %s", got)
	}
	one.Status.Source = &v1alpha1.RevisionSource{UID: "found"}
	if got := requestFor(one).UID; got != "found" {
		t.Errorf("the request is about %q, want the revision that was found", got)
	}
	one.Spec.TargetUID = "named"
	if got := requestFor(one).UID; got != "named" {
		t.Errorf("the request is about %q, want the revision that the spec names", got)
	}
}

// TestTriggerCreatesUpgradesOfWhatItHasSeen: what is gone when its turn comes is no mistake in a name.
func TestTriggerCreatesUpgradesOfWhatItHasSeen(t *testing.T) {
	one := &v1alpha1.ControllerRevisionUpgrade{}
	if requestFor(one).Seen {
		t.Error("the name of a user's upgrade may be wrong")
	}
	one.Labels = map[string]string{TriggerLabel: "5d0c2cf4"}
	if !requestFor(one).Seen {
		t.Error("a scan has seen what a trigger upgrades")
	}
}

// TestSettings: the policy of an upgrade is that of its trigger, unless it has its own.
func TestSettings(t *testing.T) {
	trigger := v1alpha1.ControllerRevisionUpgradeTriggerSpec{OnRunning: v1alpha1.OnRunningHold, LossPolicy: v1alpha1.LossAllow}
	for name, test := range map[string]struct {
		spec    v1alpha1.ControllerRevisionUpgradeSpec
		trigger v1alpha1.ControllerRevisionUpgradeTriggerSpec
		want    decision.Policy
	}{
		"of the trigger":    {trigger: trigger, want: decision.Policy{OnRunning: decision.Hold, AllowLosses: true}},
		"of its own":        {v1alpha1.ControllerRevisionUpgradeSpec{OnRunning: v1alpha1.OnRunningDefer, LossPolicy: v1alpha1.LossFail}, trigger, decision.Policy{OnRunning: decision.Defer}},
		"one of its own":    {v1alpha1.ControllerRevisionUpgradeSpec{OnRunning: v1alpha1.OnRunningDefer}, trigger, decision.Policy{OnRunning: decision.Defer, AllowLosses: true}},
		"without a trigger": {v1alpha1.ControllerRevisionUpgradeSpec{LossPolicy: v1alpha1.LossAllow}, v1alpha1.ControllerRevisionUpgradeTriggerSpec{}, decision.Policy{AllowLosses: true}},
		"nowhere":           {},
	} {
		one := &v1alpha1.ControllerRevisionUpgrade{Spec: test.spec}
		inheritSettings(one, test.trigger)
		if got := *requestFor(one).Policy; got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
