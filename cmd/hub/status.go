package hub

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/quote"
)

// maxFailures is the bound of status.failures in the CustomResourceDefinition.
const maxFailures = 20

// maxBeside bounds the text of a failure beside another text, in bytes: the CustomResourceDefinition allows 512 for both.
const maxBeside = 180

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
		case c.State == Gone:
			counts.Gone++
		case c.State == Forgotten:
			counts.Forgotten++
		case c.State != Selected, c.Failure != (Failure{}):
			counts.Failed++
		}
		if c.State == Restored {
			counts.Restored++
		}
	}
	return counts
}

// Places returns how many clusters are at each turn of their way, from phase Registering on.
func (s State) Places() []api.PlaceCount {
	var places []api.PlaceCount
	for _, c := range s.Clusters {
		name := s.PlaceOf(c)
		if name == "" {
			continue
		}
		i := slices.IndexFunc(places, func(p api.PlaceCount) bool { return p.Place == string(name) })
		if i < 0 {
			places = append(places, api.PlaceCount{Place: string(name), Hub: string(s.turnOf(c).party())})
			i = len(places) - 1
		}
		places[i].Clusters++
	}
	slices.SortFunc(places, func(a, b api.PlaceCount) int { return strings.Compare(a.Place, b.Place) })
	return places
}

// PlaceOf returns the action that a cluster waits for, or empty.
func (s State) PlaceOf(c Cluster) Action {
	if t := s.turnOf(c); t != nil {
		return t.place()
	}
	return ""
}

// Failures returns the first clusters that have a message.
func (s State) Failures() []api.ClusterFailure {
	var failures []api.ClusterFailure
	for _, c := range s.Clusters {
		message, phase := c.Failure.String(), c.FailedIn
		if c.Note != "" {
			message, phase = c.Note, s.Stage
		}
		if certificate := c.Unrevoked(); certificate != "" {
			message, phase = addSentence(quote.Clip(message, maxBeside), api.ReasonCertificateIssued.Name+": "+certificate), cmp.Or(phase, s.Stage)
		}
		if message != "" && len(failures) < maxFailures {
			failures = append(failures, api.ClusterFailure{Cluster: c.Name, Phase: phase, Message: message})
		}
	}
	return failures
}

// unrevoked says what users do about certificates at the target hub that no hub can revoke.
const unrevoked = "can't be revoked: import no other cluster under %s there before, or rotate the CA of its client certificates"

// Unrevoked says what follows from the certificate that the target hub has issued for a cluster which does not stay there, or that has left the
// migration. It is empty without one.
func (c Cluster) Unrevoked() string {
	if !c.hasUnrevoked() {
		return ""
	}
	return fmt.Sprintf("the target hub has issued a certificate for %s that is valid until %s and "+unrevoked, c.Name, c.Certificate.Format(time.RFC3339), "this name")
}

func (c Cluster) hasUnrevoked() bool {
	return !c.Certificate.IsZero() && c.State != Selected && c.State != Registered && c.State != Moved
}

// addSentence adds a sentence to a message, which may be empty.
func addSentence(message, sentence string) string {
	if message == "" {
		return sentence
	}
	return message + "; " + sentence
}

// Notes returns a note for each reason of the warnings: the first clusters, and what to do for the first of them.
func (s State) Notes() []Warning {
	var notes []Warning
	clusters := map[string][]string{}
	for _, w := range s.Warnings {
		if len(clusters[w.Reason]) == 0 {
			notes = append(notes, w)
		}
		if !slices.Contains(clusters[w.Reason], w.Cluster) {
			clusters[w.Reason] = append(clusters[w.Reason], w.Cluster)
		}
	}
	for i, w := range notes {
		notes[i].Message = firstNames(clusters[w.Reason]) + ": " + w.Message
	}
	return notes
}

// NotesOfCertificates returns what follows from the certificates that the target hub has issued for clusters that have not stayed there. The notes
// name all of these clusters.
func (s State) NotesOfCertificates() []string {
	var with []string
	last := Cluster{}
	for _, c := range s.Clusters {
		if c.hasUnrevoked() {
			with, last = append(with, c.Name+" until "+c.Certificate.Format(time.RFC3339)), c
		}
	}
	if len(with) == 1 {
		return []string{last.Unrevoked()}
	}
	return notesOf(fmt.Sprintf("the target hub has issued certificates, which "+unrevoked+"; they are valid", "one of the names"), with)
}

// Denied returns the requests of the bootstrap account that the target hub has denied, for a message; empty without one.
func (s State) Denied() string {
	if len(s.DeniedRequests) == 0 {
		return ""
	}
	return "the target hub has denied CertificateSigningRequests of the bootstrap account: " + firstNames(s.DeniedRequests)
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
	if denied := s.Denied(); denied != "" {
		add(api.ConditionRequestDenied, metav1.ConditionTrue, api.ReasonRequestDenied.Name, denied)
	}
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
			reason, message := s.waiting(Selected)
			add(kind, metav1.ConditionFalse, reason, message)
		}
	}
	if s.Stage == api.PhaseRollbacking || s.Stage == api.PhaseCleaning && s.hasClusterIn(Returning, Returned, Restored, Gone) {
		conditions = append(conditions, s.ending(api.ConditionRolledBack, Returning, Returned))
	}
	if s.Stage == api.PhaseCleaning {
		conditions = append(conditions, s.ending(api.ConditionCleaned, Registered))
	}
	return conditions
}

// Unsent returns which present command can't be sent, and why. It is empty if all commands were sent.
func (s State) Unsent() string {
	if s.Settled() {
		return ""
	}
	for _, p := range []Party{Source, Target} {
		if why := s.Record(p).Unsent; why != "" {
			if _, ok := CommandFor(s, p); ok {
				return fmt.Sprintf("the command to %s is not sent: %s", p, why)
			}
		}
	}
	return ""
}

// waiting returns the reason and the message of a condition that waits for clusters in some states, or for the present
// turn of the migration as a whole.
func (s State) waiting(states ...ClusterState) (reason, message string) {
	if unsent := s.Unsent(); unsent != "" {
		return api.ReasonCommandNotSent.Name, unsent
	}
	if !s.walks() {
		return api.ReasonInProgress.Name, "waiting for " + s.waitsFor().String()
	}
	names, failed := map[Party][]string{}, ""
	for _, c := range s.Clusters {
		t := s.turnOf(c)
		if t == nil || !slices.Contains(states, c.State) {
			continue
		}
		names[t.party()] = append(names[t.party()], c.Name)
		if failed == "" && c.FailedIn == s.Stage && c.Failure != (Failure{}) {
			failed = ": " + c.Name + ": " + c.Failure.String()
		}
	}
	var parts []string
	for _, p := range []Party{Source, Target} {
		if len(names[p]) > 0 {
			parts = append(parts, p.String()+", for "+firstNames(names[p]))
		}
	}
	if len(parts) == 0 {
		return api.ReasonInProgress.Name, "waiting for the other clusters"
	}
	return api.ReasonInProgress.Name, "waiting for " + strings.Join(parts, ", and for ") + failed
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
	if s.Reason == api.ReasonPartiallyRegistered.Name {
		return metav1.Condition{Type: api.ConditionRegistered, Status: metav1.ConditionFalse, Reason: s.Reason, Message: s.Message}
	}
	return metav1.Condition{Type: api.ConditionRegistered, Status: metav1.ConditionTrue, Reason: api.ReasonSucceeded.Name}
}

// ending returns the condition of a rollback or a cleanup, which is about clusters in some states. Its message names what
// each of them waits for.
func (s State) ending(kind string, states ...ClusterState) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse}
	isLeft := s.hasClusterIn(states...)
	c.Reason, c.Message = s.waiting(states...)
	switch {
	case s.Abandoned && (isLeft || kind == api.ConditionCleaned), s.Settled() && s.LeftBehind() != "":
		c.Reason, c.Message = api.ReasonLeftBehind.Name, s.LeftBehind()
		return c
	case s.Settled(), s.inFinalPhase() && !isLeft && kind == api.ConditionRolledBack && s.Stage == api.PhaseCleaning:
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: api.ReasonSucceeded.Name}
	case s.inFinalPhase() && c.Reason == api.ReasonInProgress.Name:
		c.Reason = api.ReasonIncomplete.Name
	}
	if failed := s.failure(); failed != "" && !s.walks() {
		c.Message += ": " + failed
	}
	return c
}
