package revisionupgrade

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
)

// Reasons of the conditions of a trigger.
const (
	// ReasonUpgrading means that upgrades are under way, or wait for other objects.
	ReasonUpgrading = "Upgrading"
	// ReasonSourcesRetained means that all references name new revisions, and that the sources are kept for the retention, so that an
	// upgrade can be rolled back.
	ReasonSourcesRetained = "SourcesRetained"
	// ReasonSucceeded means that nothing is left to upgrade.
	ReasonSucceeded = "Succeeded"
	// ReasonUpgradesFailed means that some revisions need user action.
	ReasonUpgradesFailed = "UpgradesFailed"
	// ReasonNotUpgraded means that there is something to upgrade, and that the mode is not to.
	ReasonNotUpgraded = "NotUpgraded"
	// ReasonVersionsInUse means that the cluster stores objects at an old version.
	ReasonVersionsInUse = "VersionsInUse"
	// ReasonInvalidSelector means that the label selector can't be read.
	ReasonInvalidSelector = "InvalidSelector"
	// ReasonNewerFormat means that a newer release of Godwit wrote the trigger.
	ReasonNewerFormat = "NewerFormat"
	// ReasonSuspended means that spec.suspend is true.
	ReasonSuspended = "Suspended"
	// ReasonScanned means that all revisions in scope were scanned.
	ReasonScanned = "Scanned"
)

var (
	whenReady       = remedy.Occurrence{Condition: v1alpha1.ConditionReady, EventType: corev1.EventTypeNormal}
	whenReconciling = remedy.Occurrence{Condition: v1alpha1.ConditionReconciling, EventType: corev1.EventTypeNormal}
	whenStalled     = remedy.Occurrence{Condition: v1alpha1.ConditionStalled, EventType: corev1.EventTypeWarning}
)

// Reasons documents the reasons of the conditions of a trigger.
var Reasons = []remedy.ReasonDoc{
	{Reason: ReasonUpgrading, Occurrences: []remedy.Occurrence{whenReconciling},
		Meaning: "Upgrades are under way, or wait for other objects.",
		Remedy:  "Wait. `status.counts` says how far the upgrades are."},
	{Reason: ReasonSourcesRetained, Occurrences: []remedy.Occurrence{whenReady},
		Meaning: "All references name new revisions. The old ones are kept for the retention, so that an upgrade can be rolled back.",
		Remedy:  "Nothing: the old revisions are deleted after the retention."},
	{Reason: ReasonSucceeded, Occurrences: []remedy.Occurrence{whenReady, {Condition: v1alpha1.ConditionVersionsDroppable}},
		Meaning: "Nothing is left to upgrade; in the condition VersionsDroppable, nothing in the cluster uses an old version.",
		Remedy:  "Nothing."},
	{Reason: ReasonUpgradesFailed, Occurrences: []remedy.Occurrence{whenStalled}, UserAction: true,
		Meaning: "Some revisions need user action.",
		Remedy:  "See `status.failures` for the revisions and for what to do about each."},
	{Reason: ReasonNotUpgraded, Occurrences: []remedy.Occurrence{whenReady, whenStalled}, UserAction: true,
		Meaning: "Revisions are at old versions, and the mode of the trigger is not to upgrade them.",
		Remedy:  "See `status.versionCounts`. Set another `spec.mode` to have them upgraded."},
	{Reason: ReasonVersionsInUse, UserAction: true,
		Meaning: "Something in the cluster uses an old version. It is a reason of the condition VersionsDroppable, which is False.",
		Remedy:  "See what uses it: `godwit revision plan`."},
	{Reason: ReasonInvalidSelector, Occurrences: []remedy.Occurrence{whenStalled}, UserAction: true,
		Meaning: "The label selector of the trigger can't be read.",
		Remedy:  "Create another trigger with a selector that the message does not reject."},
	{Reason: ReasonNewerFormat, Occurrences: []remedy.Occurrence{whenStalled}, UserAction: true,
		Meaning: "A newer release of Godwit wrote the trigger, in a format that this release does not read. Nothing is upgraded.",
		Remedy:  "Run that release, or a newer one; or delete the trigger and create another."},
	{Reason: ReasonSuspended,
		Meaning: "spec.suspend is true.",
		Remedy:  "Set `spec.suspend` to false to resume."},
	{Reason: ReasonScanned, Occurrences: []remedy.Occurrence{{Condition: v1alpha1.ConditionDiscovered}},
		Meaning: "The manager scanned all revisions in scope.",
		Remedy:  "Nothing."},
}
