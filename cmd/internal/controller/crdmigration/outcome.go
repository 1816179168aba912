package crdmigration

import (
	"time"

	"k8s.io/client-go/tools/events"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// outcome is the result of a reconciliation, with or without a pass.
type outcome struct {
	status.Summary
	blockers []godwit.Finding
}

// outcomeOf returns the outcome of a pass as storageversion decided it. Times and counts are in fields of the status,
// not in conditions.
func outcomeOf(s decision.Step) outcome {
	o := outcome{Summary: status.Summary{State: status.StateReconciling, Reason: s.Reason.String(), Message: s.Message}, blockers: s.Blockers}
	switch {
	case s.Action == decision.ActionDone:
		o.State = status.StateReady
	case s.Stalled():
		o.State = status.StateStalled
	}
	o.Warning = s.Reason == decision.ReasonFailed || s.Reason == decision.ReasonObjectsUnlisted || len(s.Blockers) > 0
	return o
}

func migrating() outcome {
	return outcome{Summary: status.Summary{State: status.StateReconciling, Reason: ReasonMigrating.Name, Message: "objects are being written"}}
}

func suspended() outcome {
	return outcome{Summary: status.Summary{Reason: ReasonSuspended.Name, Message: "spec.suspend is true; set it to false to resume"}}
}

// withdrawn returns the outcome of a run that ended because the CRDMigration changed or was deleted.
func withdrawn(err error) outcome {
	return outcome{Summary: status.Summary{State: status.StateReconciling, Reason: decision.ReasonRetrying.Name, Message: err.Error()}}
}

// apply writes an outcome into the status.
func (o outcome) apply(m *v1alpha1.CRDMigration) {
	o.Apply(m)
	reason, message := ReasonNotBlocked, "no blocker keeps the migration from starting"
	if len(o.blockers) > 0 {
		reason, message = o.blockers[0].Reason, o.blockers[0].Message
	}
	status.SetCondition(m, v1alpha1.ConditionBlocked, len(o.blockers) > 0, reason.Name, message)
	m.Status.Blockers = fixText(o.blockers[:min(len(o.blockers), maxSamples)])
}

// maxSamples is the limit of the CRD for failures and for blockers.
const maxSamples = 20

// needsEvent reports whether the outcome needs an event, unless the status already has it. Progress needs none.
func (o outcome) needsEvent() bool {
	return o.State != status.StateReconciling || o.Warning || o.Reason == decision.ReasonSettling.Name
}

const (
	eventAction = "MigrateStorageVersion"
	// announceAgain is how long an API server keeps events by default.
	announceAgain = time.Hour
)

// announce records an event. It repeats the event of a migration that does not converge each hour, because the API
// server has deleted it by then. It returns the time of the last such event.
func (o outcome) announce(recorder events.EventRecorder, before *v1alpha1.CRDMigration, reported, now time.Time) time.Time {
	again := o.Reason == decision.ReasonNotConverging.Name && now.Sub(reported) >= announceAgain
	if again {
		reported = now
	}
	if o.needsEvent() && (again || !o.Same(before.Status.Conditions)) {
		o.Announce(recorder, before, eventAction)
	}
	return reported
}

// fixText returns the fixes in words for readers of a status.
func fixText(blockers []godwit.Finding) []v1alpha1.Blocker {
	var all []v1alpha1.Blocker
	for _, b := range blockers {
		all = append(all, v1alpha1.Blocker{Reason: b.Reason.String(), Message: b.Message, Remedy: remedy.Manager.Text(b.Fix)})
	}
	return all
}
