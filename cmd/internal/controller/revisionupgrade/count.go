package revisionupgrade

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/revision"
)

// Reasons of a trigger's conditions.
const (
	// ReasonUpgrading: upgrades are under way, or wait for something that will come.
	ReasonUpgrading = "Upgrading"
	// ReasonSourcesRetained: everybody refers to a successor, and the sources are kept for a
	// while, so that an upgrade can be rolled back.
	ReasonSourcesRetained = "SourcesRetained"
	// ReasonSucceeded: nothing is left to upgrade.
	ReasonSucceeded = "Succeeded"
	// ReasonUpgradesFailed: some revisions need somebody.
	ReasonUpgradesFailed = "UpgradesFailed"
	// ReasonNotUpgraded means that there is something to upgrade, and that the mode is not to.
	ReasonNotUpgraded = "NotUpgraded"
	// ReasonVersionsInUse: something is left at an old version.
	ReasonVersionsInUse = "VersionsInUse"
	// ReasonInvalidSelector: the label selector can't be read.
	ReasonInvalidSelector = "InvalidSelector"
	// ReasonSuspended: the spec says to wait.
	ReasonSuspended = "Suspended"
	// ReasonScanned: all revisions of the scope were looked at.
	ReasonScanned = "Scanned"
)

// ledger is what became of upgrades.
type ledger struct {
	counts   v1alpha1.RevisionCounts
	failures []godwit.Failure
	kept     bool // a source that will go is there
}

// add enters an upgrade, by its phase.
func (l *ledger) add(one *v1alpha1.ControllerRevisionUpgrade) {
	l.kept = l.kept || keepsItsSource(one)
	ready := meta.FindStatusCondition(one.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		ready = &metav1.Condition{}
	}
	c := &l.counts
	switch phase := revision.Phase(one.Status.Phase); {
	case phase == revision.Succeeded && one.Status.Replacement == nil:
		c.Relabelled++
	case phase == revision.Succeeded, phase == revision.Retained:
		c.Succeeded++
	case phase == revision.Skipped: // it is gone, or somebody else has done it
	case phase == revision.RolledBack:
		l.rolledBack(one.Namespace, one.Spec.TargetName, "")
	case phase == revision.InUse:
		c.InUse++
	case phase == revision.Failed:
		l.failures = fail(l.failures, one.Namespace, one.Spec.TargetName, ready.Reason+": "+ready.Message)
		if blockedReasons[ready.Reason] {
			c.Blocked++
			return
		}
		c.Failed++
	case deferredReasons[ready.Reason]:
		c.Deferred++
	default:
		c.Pending++
	}
}

// rolledBack enters a revision that was rolled back, or whose rollback is pending: no trigger
// undoes that.
func (l *ledger) rolledBack(namespace, name, pending string) {
	l.counts.Blocked++
	if pending != "" {
		again := remedy.For(revision.Item{Namespace: namespace, Name: name, Reason: revision.ReasonRollbackPending}, "")
		l.failures = fail(l.failures, namespace, name, revision.ReasonRollbackPending+": "+pending+". "+again.Remedy)
		return
	}
	l.failures = fail(l.failures, namespace, name, revision.ReasonRolledBack+": references were led back to it. "+remedy.For(revision.Item{Reason: revision.ReasonRolledBack}, "").Remedy)
}

// keepsItsSource for a while, and not for good.
func keepsItsSource(one *v1alpha1.ControllerRevisionUpgrade) bool {
	forGood := one.Spec.Retention != nil && one.Spec.Retention.Policy == v1alpha1.RetentionRetain
	return revision.Phase(one.Status.Phase) == revision.Retained && !forGood
}

// blockedReasons are about what nobody has tried yet.
var blockedReasons = map[string]bool{
	revision.ReasonConflictingTypes: true, revision.ReasonLossy: true, revision.ReasonTargetNotServed: true,
	revision.ReasonCRDNotFound: true, revision.ReasonNoController: true,
}

// deferredReasons are what time cures.
var deferredReasons = map[string]bool{revision.ReasonRunning: true, revision.ReasonReferrerNotReady: true, revision.ReasonTerminating: true}

// upgrading is the Summary while upgrades are created or under way.
func (t *Triggers) upgrading(spec v1alpha1.ControllerRevisionUpgradeTriggerSpec) status.Summary {
	atOnce := int32(defaultAtOnce)
	if spec.MaxConcurrent != nil {
		atOnce = *spec.MaxConcurrent
	}
	pace := "limits.maxWritesPerSecond of the manager is 0, which is no limit"
	if t.MaxWritesPerSecond > 0 {
		pace = fmt.Sprintf("limits.maxWritesPerSecond of the manager allows %g writes per second", t.MaxWritesPerSecond)
	}
	return status.Summary{State: status.StateReconciling, Reason: ReasonUpgrading, Message: fmt.Sprintf(
		"Upgrades are under way: see status.counts, and each upgrade for what it waits for. %s, and spec.maxConcurrent %d upgrades at once.", pace, atOnce)}
}

// summaryOf summarizes the counts.
func (t *Triggers) summaryOf(spec v1alpha1.ControllerRevisionUpgradeTriggerSpec, c v1alpha1.RevisionCounts) status.Summary {
	m := spec.Mode
	waiting, stuck := c.Pending+c.Deferred+c.InUse, c.Blocked+c.Failed
	switch {
	case waiting+stuck == 0:
		return status.Summary{State: status.StateReady, Reason: ReasonSucceeded, Message: "nothing is left to upgrade"}
	case m == v1alpha1.ModeVerify:
		return status.Summary{State: status.StateStalled, Reason: ReasonNotUpgraded, Message: "revisions are left at old versions: see status.versionCounts"}
	case m == v1alpha1.ModeDryRun:
		return status.Summary{State: status.StateReady, Reason: ReasonNotUpgraded, Message: "revisions are left at old versions, and the mode is to leave them"}
	case waiting > 0:
		return t.upgrading(spec)
	}
	return status.Summary{State: status.StateStalled, Reason: ReasonUpgradesFailed, Message: "some revisions need somebody: see status.failures"}
}

// stand is where everything stands: for who upgrades, what became of the upgrades, and
// of those that a scan has just found to be somebody else's.
func (t *Triggers) stand(ctx context.Context, trigger *v1alpha1.ControllerRevisionUpgradeTrigger, f *finding) (status.Summary, error) {
	s := &trigger.Status
	if !upgrades(trigger.Spec.Mode) {
		return t.summaryOf(trigger.Spec, *s.Counts), nil
	}
	list := &v1alpha1.ControllerRevisionUpgradeList{}
	mine := client.MatchingLabels{TriggerLabel: string(trigger.UID)}
	if err := t.Client.List(ctx, list, mine, client.UnsafeDisableDeepCopy); err != nil {
		return status.Summary{}, fmt.Errorf("list controllerrevisionupgrades: %w", err)
	}
	all := ledger{}
	if f != nil {
		all = f.others
		all.counts.Succeeded, all.counts.Relabelled = 0, 0 // which is for their own trigger to tell
	}
	for i := range list.Items {
		all.add(&list.Items[i])
	}
	all.counts.Discovered, all.counts.UpToDate = s.Counts.Discovered, s.Counts.UpToDate
	s.Counts, s.Failures = &all.counts, all.failures
	v := t.summaryOf(trigger.Spec, all.counts)
	if v.State == status.StateReady && all.kept {
		v.Reason, v.Message = ReasonSourcesRetained, "everybody refers to a successor; the sources go when their time is over: see status.retainedUntil of the upgrades"
	}
	return v, nil
}

// setInventory sets the conditions about what was found, and what can be dropped.
func setInventory(trigger *v1alpha1.ControllerRevisionUpgradeTrigger, i revision.Inventory) {
	message := "every revision in scope was scanned"
	if len(i.UnknownStorageVersions) > 0 {
		message += fmt.Sprintf("; the CRDs store %s, to which this release converts nothing: a later release of Godwit may", strings.Join(i.UnknownStorageVersions, ", "))
	}
	status.SetCondition(trigger, v1alpha1.ConditionDiscovered, true, ReasonScanned, message)
	if len(i.InUse) > 0 {
		first := i.InUse[0]
		status.SetCondition(trigger, v1alpha1.ConditionVersionsDroppable, false, ReasonVersionsInUse,
			fmt.Sprintf("%s is held by %s", first.Version, strings.Join(first.UsedBy, ", ")))
		return
	}
	status.SetCondition(trigger, v1alpha1.ConditionVersionsDroppable, true, ReasonSucceeded, "nothing is left at "+strings.Join(i.Droppable, ", "))
}
