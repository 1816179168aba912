package revisionupgrade

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/format"
)

// Reasons are those of the conditions of a trigger.
var Reasons godwit.Catalog

// Reasons of the conditions of a trigger.
var (
	ReasonUpgrading = Reasons.Declare(godwit.Reason{
		Name:    "Upgrading",
		Meaning: "Upgrades are under way, or wait for other objects.",
		Fix:     godwit.Do("wait. `status.counts` says how far the upgrades are"),
	})
	ReasonSourcesRetained = Reasons.Declare(godwit.Reason{
		Name:    "SourcesRetained",
		Meaning: "All references name new revisions. The old ones are kept for the retention, so that an upgrade can be rolled back.",
		Fix:     godwit.Do("nothing: the old revisions are deleted after the retention"),
	})
	ReasonSucceeded = Reasons.Declare(godwit.Reason{
		Name:    "Succeeded",
		Meaning: "Nothing is left to upgrade; in the condition VersionsDroppable, nothing in the cluster uses an old version.",
		Fix:     godwit.Do("nothing"),
	})
	ReasonUpgradesFailed = Reasons.Declare(godwit.Reason{
		Name: "UpgradesFailed", UserAction: true,
		Meaning: "Some revisions need user action.",
		Fix:     godwit.Do("see `status.failures` for the revisions and for what to do about each"),
	})
	ReasonNotUpgraded = Reasons.Declare(godwit.Reason{
		Name: "NotUpgraded", UserAction: true,
		Meaning: "Revisions are at old versions, and the mode of the trigger is not to upgrade them.",
		Fix:     godwit.Do("see `status.versionCounts`. Create a trigger with `mode: Upgrade` in its spec to have them upgraded"),
	})
	ReasonVersionsInUse = Reasons.Declare(godwit.Reason{
		Name: "VersionsInUse", UserAction: true,
		Meaning: "Something in the cluster uses an old version. It is a reason of the condition VersionsDroppable, which is False.",
		Fix:     godwit.Do("see what uses it: `godwit revision plan`"),
	})
	ReasonInvalidSelector = Reasons.Declare(godwit.Reason{
		Name: "InvalidSelector", UserAction: true,
		Meaning: "The label selector of the trigger can't be read.",
		Fix:     godwit.Do("create another trigger with a selector that the message does not reject"),
	})
	ReasonNewerFormat = format.DeclareNewer(&Reasons, "wrote the trigger",
		"Nothing is upgraded.", godwit.Do("run that release, or a newer one; or delete the trigger and create another"))
	ReasonSuspended = Reasons.Declare(godwit.Reason{
		Name:    "Suspended",
		Meaning: "spec.suspend is true.",
		Fix:     godwit.Do("set `spec.suspend` to false to resume"),
	})
	ReasonScanned = Reasons.Declare(godwit.Reason{
		Name:    "Scanned",
		Meaning: "The manager scanned all revisions in scope.",
		Fix:     godwit.Do("nothing"),
	})
)

var (
	whenReady       = status.Occurrence{Condition: v1alpha1.ConditionReady, EventType: corev1.EventTypeNormal}
	whenReconciling = status.Occurrence{Condition: v1alpha1.ConditionReconciling, EventType: corev1.EventTypeNormal}
	whenStalled     = status.Occurrence{Condition: v1alpha1.ConditionStalled, EventType: corev1.EventTypeWarning}
)

// TriggerOccurrences are how a reason shows in the status of a trigger.
func TriggerOccurrences(reason *godwit.Reason) []status.Occurrence {
	switch reason {
	case ReasonUpgrading:
		return []status.Occurrence{whenReconciling}
	case ReasonSourcesRetained:
		return []status.Occurrence{whenReady}
	case ReasonSucceeded:
		return []status.Occurrence{whenReady, {Condition: v1alpha1.ConditionVersionsDroppable}}
	case ReasonUpgradesFailed, ReasonInvalidSelector, ReasonNewerFormat:
		return []status.Occurrence{whenStalled}
	case ReasonNotUpgraded:
		return []status.Occurrence{whenReady, whenStalled}
	case ReasonScanned:
		return []status.Occurrence{{Condition: v1alpha1.ConditionDiscovered}}
	}
	return nil
}
