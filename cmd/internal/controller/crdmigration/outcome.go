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

// outcome is what a pass, or the lack of one, amounts to.
type outcome struct {
	status.Summary
	blockers []godwit.Finding
}

// outcomeOf renders what storageversion decided about a pass. Times and counts are in the
// status beside the conditions.
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

// withdrawn means that a run ended because the CRDMigration changed, or was deleted.
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

// maxSamples is what the CRD allows for failures and for blockers.
const maxSamples = 20

// needsEvent reports whether users get an event, unless the status says the same already.
// Progress is no news.
func (o outcome) needsEvent() bool {
	return o.State != status.StateReconciling || o.Warning || o.Reason == decision.ReasonSettling.Name
}

const (
	eventAction = "MigrateStorageVersion"
	// announceAgain is how long an API server keeps events by default.
	announceAgain = time.Hour
)

// announce records an event. A migration that does not converge is announced again each
// hour, since the API server has deleted its event by then. It returns the time of the last
// such event.
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

// fixText words the fixes for the readers of a status.
func fixText(blockers []godwit.Finding) []v1alpha1.Blocker {
	var all []v1alpha1.Blocker
	for _, b := range blockers {
		all = append(all, v1alpha1.Blocker{Reason: b.Reason.String(), Message: b.Message, Remedy: remedy.Manager.Text(b.Fix)})
	}
	return all
}
