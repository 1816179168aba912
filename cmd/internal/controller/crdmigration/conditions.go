package crdmigration

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// verdict is what a pass, or the lack of one, amounts to.
type verdict struct {
	ready   bool
	working bool // goes on by itself
	stalled bool // needs a user's action
	reason  string
	message string
	blocked []godwit.Blocker
}

// verdictOf renders what crdmigrator decided about a pass. Times and counts are in
// the status beside the conditions.
func verdictOf(s crdmigrator.Step) verdict {
	ready := s.Action == crdmigrator.ActionDone
	return verdict{ready: ready, working: !ready && !s.Stalled(), stalled: s.Stalled(), reason: s.Reason, message: s.Message, blocked: s.Blockers}
}

func migrating() verdict {
	return verdict{working: true, reason: v1alpha1.ReasonMigrating, message: "objects are being written"}
}

// trims: without the rewrite nobody knows at which version objects are stored.
func trims(spec v1alpha1.CRDMigrationSpec) bool {
	return (spec.Trim == nil || *spec.Trim) && runs(spec, crdmigrator.StorageVersionMigrationPhase)
}

func suspended() verdict {
	return verdict{reason: v1alpha1.ReasonSuspended, message: "spec.suspend is set; it goes on where it stopped once that is removed"}
}

// apply writes a verdict into the conditions.
func (v verdict) apply(m *v1alpha1.CRDMigration) {
	status := map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}
	set := func(kind string, is bool, reason, message string) {
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
			Type: kind, Status: status[is], Reason: reason, Message: strings.ToValidUTF8(message[:min(len(message), maxMessage)], ""), ObservedGeneration: m.Generation,
		})
	}
	set(v1alpha1.ConditionReady, v.ready, v.reason, v.message)
	set(v1alpha1.ConditionReconciling, v.working, v.reason, v.message)
	set(v1alpha1.ConditionStalled, v.stalled, v.reason, v.message)
	if len(v.blocked) > 0 {
		set(v1alpha1.ConditionBlocked, true, v.blocked[0].Reason, v.blocked[0].Message)
	} else {
		set(v1alpha1.ConditionBlocked, false, v1alpha1.ReasonNotBlocked, "nothing keeps the migration from starting")
	}
	m.Status.ObservedGeneration = m.Generation
	m.Status.Blockers = v.blocked[:min(len(v.blocked), maxSamples)]
}

// maxMessage is what a condition takes; a longer one would have the API server refuse
// the status.
const maxMessage = 32768

// maxSamples is what the kind allows for failures and for blockers.
const maxSamples = 20
