package hub

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// maxFailures is the bound of status.failures in the CustomResourceDefinition.
const maxFailures = 20

// stageConditions are the conditions of the stages in their order.
var stageConditions = map[api.Phase]string{
	api.PhaseValidating: api.ConditionValidated, api.PhaseInitializing: api.ConditionInitialized,
	api.PhaseDeploying: api.ConditionDeployed, api.PhaseRegistering: api.ConditionRegistered,
}

// Counts returns the number of clusters in each state of the API.
func (s State) Counts() api.ClusterCounts {
	counts := api.ClusterCounts{Total: int32(len(s.Clusters))} //nolint:gosec // admission allows 5,000
	for _, c := range s.Clusters {
		switch {
		case c.State == Registered, c.State == Moved:
			counts.Moved++
		case c.State != Selected, c.Failure != (Failure{}):
			counts.Failed++
		}
		if c.State == Restored {
			counts.Restored++
		}
	}
	return counts
}

// Failures returns the first clusters that have a message.
func (s State) Failures() []api.ClusterFailure {
	var failures []api.ClusterFailure
	for _, c := range s.Clusters {
		if c.Failure != (Failure{}) && len(failures) < maxFailures {
			failures = append(failures, api.ClusterFailure{Cluster: c.Name, Phase: c.FailedIn, Message: c.Failure.String()})
		}
	}
	return failures
}

// Conditions returns the conditions of the reached stages, without times. The conditions for kstatus (Ready,
// Reconciling and Stalled) follow from the phase, [State.Settled] and these.
func (s State) Conditions() []metav1.Condition {
	var conditions []metav1.Condition
	add := func(kind string, status metav1.ConditionStatus, reason, message string) {
		conditions = append(conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	}
	if s.Phase == api.PhasePending {
		if s.WaitingFor != "" {
			add(api.ConditionStarted, metav1.ConditionFalse, api.ReasonWaiting.Name, fmt.Sprintf("migration %s moves one of the clusters; this one starts when it has ended", s.WaitingFor))
		}
		return conditions
	}
	add(api.ConditionStarted, metav1.ConditionTrue, api.ReasonSucceeded.Name, "")
	reached, failed := s.reachedStage()
	for _, stage := range stages[:StageNumber(api.PhaseRegistering)] {
		switch kind := stageConditions[stage]; {
		case StageNumber(stage) < StageNumber(reached):
			add(kind, metav1.ConditionTrue, api.ReasonSucceeded.Name, "")
		case stage == reached && s.Stage == api.PhaseCleaning:
			conditions = append(conditions, s.registered())
		case stage == reached && failed:
			add(kind, metav1.ConditionFalse, s.Reason, s.Message)
		case stage == reached:
			reason, message := s.waiting()
			add(kind, metav1.ConditionFalse, reason, message)
		}
	}
	if s.Stage == api.PhaseRollbacking || s.Stage == api.PhaseCleaning && s.hasClusterIn(Returning, Returned, Restored) {
		conditions = append(conditions, s.ending(api.ConditionRolledBack, s.clustersIn(Returning, Returned)))
	}
	if s.Stage == api.PhaseCleaning {
		conditions = append(conditions, s.ending(api.ConditionCleaned, s.clustersIn(Registered)))
	}
	return conditions
}

// Unsent returns which present command can't be sent, and why. It is empty if all commands were sent.
func (s State) Unsent() string {
	if s.Settled() {
		return ""
	}
	for _, t := range s.turn() {
		if why := s.record(t.party).Unsent; why != "" {
			return fmt.Sprintf("the command to %s is not sent: %s", t.party, why)
		}
	}
	return ""
}

// waiting returns the reason and the message of a condition that waits for the present turn.
func (s State) waiting() (reason, message string) {
	if unsent := s.Unsent(); unsent != "" {
		return api.ReasonCommandNotSent.Name, unsent
	}
	return api.ReasonInProgress.Name, "waiting for " + s.waitsFor().String()
}

// reachedStage returns the last stage before a rollback, and whether the migration failed in it.
func (s State) reachedStage() (stage api.Phase, failed bool) {
	switch {
	case s.Stage == "":
		return api.PhaseValidating, true
	case s.Stage == api.PhaseRollbacking:
		return s.RollbackStage, true
	case s.Stage == api.PhaseCleaning:
		return api.PhaseRegistering, false
	}
	return s.Stage, false
}

// registered returns the condition after phase Registering.
func (s State) registered() metav1.Condition {
	if s.hasClusterIn(Returning, Returned, Restored) {
		return metav1.Condition{Type: api.ConditionRegistered, Status: metav1.ConditionFalse, Reason: api.ReasonPartiallyRegistered.Name, Message: s.Message}
	}
	return metav1.Condition{Type: api.ConditionRegistered, Status: metav1.ConditionTrue, Reason: api.ReasonSucceeded.Name}
}

// ending returns the condition of a rollback or a cleanup. Its message names the clusters that are left.
func (s State) ending(kind string, left []string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse}
	c.Reason, c.Message = s.waiting()
	switch {
	case s.Settled(), s.inFinalPhase() && len(left) == 0 && kind == api.ConditionRolledBack && s.Stage == api.PhaseCleaning:
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: api.ReasonSucceeded.Name}
	case s.inFinalPhase() && c.Reason == api.ReasonInProgress.Name:
		c.Reason = api.ReasonIncomplete.Name
	}
	if len(left) > 0 {
		c.Message += ", for " + firstNames(left)
	}
	if failed := s.failure(); failed != "" {
		c.Message += ": " + failed
	}
	return c
}
