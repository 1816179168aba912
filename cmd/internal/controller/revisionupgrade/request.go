package revisionupgrade

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// TriggerLabel is the label of an upgrade with the UID of its trigger. An upgrade that a user created does not have it.
const TriggerLabel = "godwit.dev/trigger-uid"

var triggerKind = v1alpha1.GroupVersion.WithKind("ControllerRevisionUpgradeTrigger")

// triggerOf returns the trigger of an upgrade. Its UID is empty if a user created the upgrade.
func triggerOf(upgrade metav1.Object) metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(upgrade)
	if owner == nil || owner.Kind != triggerKind.Kind {
		return metav1.OwnerReference{}
	}
	return *owner
}

// sourceUID returns the UID of an upgrade's revision. It is empty if the spec has only a name, and the revision was not
// found yet.
func sourceUID(upgrade *v1alpha1.ControllerRevisionUpgrade) types.UID {
	if upgrade.Spec.TargetUID == "" && upgrade.Status.Source != nil {
		return upgrade.Status.Source.UID
	}
	return types.UID(upgrade.Spec.TargetUID)
}

// phaseOf returns the phase of an upgrade.
func phaseOf(upgrade *v1alpha1.ControllerRevisionUpgrade) revision.Phase {
	return revision.Phase(upgrade.Status.Phase)
}

// readyReason is the reason of the condition Ready; empty before the first status.
func readyReason(upgrade *v1alpha1.ControllerRevisionUpgrade) string {
	if ready := meta.FindStatusCondition(upgrade.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// settings are the fields of a spec that a user may change while the upgrade is under way.
type settings struct {
	onRunning  v1alpha1.OnRunning
	lossPolicy v1alpha1.LossPolicy
}

func settingsOf(upgrade *v1alpha1.ControllerRevisionUpgrade) settings {
	return settings{upgrade.Spec.OnRunning, upgrade.Spec.LossPolicy}
}

// inheritSettings sets the settings that an upgrade does not have to those of its trigger, in memory: a write to each upgrade would
// look like a request of the user to upgrade a rolled-back revision again.
func inheritSettings(upgrade *v1alpha1.ControllerRevisionUpgrade, trigger v1alpha1.ControllerRevisionUpgradeTriggerSpec) {
	upgrade.Spec.OnRunning = cmp.Or(upgrade.Spec.OnRunning, trigger.OnRunning)
	upgrade.Spec.LossPolicy = cmp.Or(upgrade.Spec.LossPolicy, trigger.LossPolicy)
}

// isObserved reports whether the status is about the present spec.
func isObserved(upgrade *v1alpha1.ControllerRevisionUpgrade) bool {
	return upgrade.Status.ObservedGeneration == upgrade.Generation
}

// isFinished reports whether an upgrade needs no more visits. A rolled-back upgrade needs visits until its new revision
// is deleted.
func isFinished(upgrade *v1alpha1.ControllerRevisionUpgrade) bool {
	phase := phaseOf(upgrade)
	retains := phase == revision.RolledBack && upgrade.Status.RetainedUntil != nil
	return isObserved(upgrade) && phase.Ended() && !retains
}

// afterRollback reports whether a user requests another upgrade of a rolled-back revision: the user created the
// upgrade, or changed its spec. It returns true until the upgrade has begun, which removes the mark of the rollback
// from the revision.
func afterRollback(upgrade *v1alpha1.ControllerRevisionUpgrade) bool {
	begun := !slices.Contains([]revision.Phase{"", revision.Pending, revision.Analyzing}, phaseOf(upgrade))
	asked := upgrade.Labels[TriggerLabel] == "" || upgrade.Generation > 1
	return asked && !upgrade.Spec.Rollback && (!begun || upgrade.Status.ObservedGeneration < upgrade.Generation)
}

// requestFor returns the request of an upgrade. It is for the revision that was found first, even if the spec has no
// UID. A trigger creates upgrades only of what its scan has seen.
func requestFor(upgrade *v1alpha1.ControllerRevisionUpgrade) revision.Request {
	spec := upgrade.Spec
	p := policy(spec.TargetVersion, spec.OnRunning, spec.LossPolicy, spec.Retention)
	return revision.Request{
		Name: spec.TargetName, UID: sourceUID(upgrade), Seen: upgrade.Labels[TriggerLabel] != "", Policy: &p, Rollback: spec.Rollback, AfterRollback: afterRollback(upgrade),
	}
}

func policy(target string, running v1alpha1.OnRunning, losses v1alpha1.LossPolicy, r *v1alpha1.Retention) decision.Policy {
	p := decision.Policy{Target: target, OnRunning: decision.OnRunning(running), AllowLosses: losses == v1alpha1.LossAllow}
	if r != nil {
		p.Retain = r.Policy == v1alpha1.RetentionRetain
		if r.TTL != nil {
			p.Retention = r.TTL.Duration
		}
	}
	return p
}

func continuous(spec v1alpha1.ControllerRevisionUpgradeTriggerSpec) bool {
	return spec.Run == v1alpha1.RunContinuous
}

// createsUpgrades reports whether a mode creates upgrades.
func createsUpgrades(m v1alpha1.UpgradeMode) bool { return m == "" || m == v1alpha1.ModeUpgrade }

// newerFormat returns an error if a newer release of Godwit wrote the upgrade.
func newerFormat(one *v1alpha1.ControllerRevisionUpgrade) error {
	err := format.CheckObject(fmt.Sprintf("controllerrevisionupgrade %s/%s", one.Namespace, one.Name), one)
	if err != nil {
		err = fmt.Errorf("%w; %s", err, format.Do)
	}
	return err
}
