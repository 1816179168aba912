package revisionupgrade

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// tally counts upgrades.
type tally struct {
	counts   v1alpha1.RevisionCounts
	failures []v1alpha1.Failure
	// retains reports whether a source is kept until the end of its retention.
	retains bool
}

// add counts an upgrade by its phase.
func (l *tally) add(one *v1alpha1.ControllerRevisionUpgrade) {
	l.retains = l.retains || retainsSource(one)
	ready := meta.FindStatusCondition(one.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		ready = &metav1.Condition{}
	}
	c := &l.counts
	switch phase := phaseOf(one); {
	case phase == revision.Succeeded && one.Status.Replacement == nil:
		c.Relabelled++
	case phase == revision.Succeeded, phase == revision.Retained:
		c.Succeeded++
	case phase == revision.Skipped: // the source is deleted, or another client upgraded it
	case phase == revision.RolledBack:
		l.addRolledBack(one.Namespace, one.Spec.TargetName, "")
	case newerFormat(one) != nil: // only a user can have it continue
		l.failures = appendFailure(l.failures, one.Namespace, one.Spec.TargetName, decision.ReasonNewerFormat.Name, newerFormat(one).Error())
		c.Failed++
	case phase == revision.InUse:
		c.InUse++
	case phase == revision.Failed:
		l.failures = appendFailure(l.failures, one.Namespace, one.Spec.TargetName, ready.Reason, ready.Message)
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

// addRolledBack counts a revision that was rolled back, or whose rollback is pending: a trigger does not undo a
// rollback.
func (l *tally) addRolledBack(namespace, name, pending string) {
	l.counts.Blocked++
	if pending != "" {
		again := advice(decision.Item{Namespace: namespace, Name: name, Reason: decision.ReasonRollbackPending}, remedy.Manager)
		l.failures = appendFailure(l.failures, namespace, name, decision.ReasonRollbackPending.Name, pending+again)
		return
	}
	l.failures = appendFailure(l.failures, namespace, name, decision.ReasonRolledBack.Name, "references were repointed to it. "+remedy.Manager.Sentence(decision.ReasonRolledBack.Fix))
}

func appendFailure(all []v1alpha1.Failure, namespace, name, reason, message string) []v1alpha1.Failure {
	if len(all) == maxSamples {
		return all
	}
	return append(all, v1alpha1.Failure{Namespace: namespace, Name: name, Reason: reason, Message: message})
}

// retainsSource reports whether an upgrade keeps its source for the retention, and not permanently.
func retainsSource(one *v1alpha1.ControllerRevisionUpgrade) bool {
	permanently := one.Spec.Retention != nil && one.Spec.Retention.Policy == v1alpha1.RetentionRetain
	return phaseOf(one) == revision.Retained && !permanently
}

// blockedReasons are the reasons of failures before the first write.
var blockedReasons = map[string]bool{
	decision.ReasonConflictingTypes.Name: true, decision.ReasonLossy.Name: true, decision.ReasonTargetNotServed.Name: true,
	decision.ReasonCRDNotFound.Name: true, decision.ReasonNoController.Name: true,
}

// deferredReasons are the reasons that end without user action.
var deferredReasons = map[string]bool{decision.ReasonRunning.Name: true, decision.ReasonReferrerNotReady.Name: true, decision.ReasonTerminating.Name: true}
