package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/quote"
)

// renameStep is a step of a renaming.
type renameStep string

const (
	// stepWait waits for the provider.
	stepWait renameStep = "Wait"
	// stepPause writes the journal and the pause.
	stepPause renameStep = "Pause"
	// stepTry writes the new name, allows the provider to observe alone, and ends the pause.
	stepTry renameStep = "Try"
	// stepRename writes the new name and ends the pause.
	stepRename renameStep = "Rename"
	// stepHold pauses the managed resource, for which the provider has begun to create an external resource.
	stepHold renameStep = "Hold"
	// stepAccount writes the old name, and the name of the second external resource to the journal.
	stepAccount renameStep = "Account"
	// stepProve records that the external resource is the same, and gives the provider its management policies back.
	stepProve renameStep = "Prove"
	// stepUndo writes the old name and removes the journal.
	stepUndo renameStep = "Undo"
	// stepAbandon removes the journal, and Godwit's pause and management policies, and keeps the name.
	stepAbandon renameStep = "Abandon"
	// stepEnd writes nothing.
	stepEnd renameStep = "End"
)

// decision is a step, and the phase and the reason of the result if the step ends the renaming.
type decision struct {
	step    renameStep
	phase   Phase
	reason  *godwit.Reason
	message string
}

func endWith(m renameStep, p Phase, reason *godwit.Reason, format string, args ...any) decision {
	return decision{m, p, reason, fmt.Sprintf(format, args...)}
}

// situation has the facts for the decisions of a renaming.
type situation struct {
	// exists is false for an object that was deleted, even if it was created again.
	exists, deleting, paused bool
	name                     *string
	journal                  *journal
	journalErr               error
	synced                   managed.Condition
	identity                 map[string]string
	creations                string
	// creationUnknown means that a creation has begun and its outcome is not recorded.
	creationUnknown, creationFailed bool
	policies                        []string
	// trial means that the provider may observe the new name before it may write.
	trial bool
	// current and proposed are the names in the plan.
	current, proposed string
	// expired means that the time of the provider to answer is over.
	expired bool
}

func (s situation) has(name *string) bool {
	if s.name == nil || name == nil {
		return s.name == nil && name == nil
	}
	return *s.name == *name
}

func (s situation) nameText() string {
	if s.name == nil {
		return ""
	}
	return *s.name
}

// decideStep decides the next step of a renaming. It is pure.
func decideStep(s situation) decision {
	switch {
	case !s.exists:
		return endWith(stepEnd, PhaseGone, nil, "the managed resource is deleted")
	case s.journalErr != nil:
		reason, message := unreadable(s.journalErr)
		return endWith(stepEnd, PhaseFailed, reason, "%s", message)
	case s.journal == nil, s.journal.Phase == phaseRenamed:
		return decideBegin(s)
	}
	switch s.journal.Phase {
	case phaseDoubled:
		return endWith(stepEnd, PhaseSkipped, ReasonSecondResource, "%s", s.journal.doubled())
	case phasePausing:
		return decidePaused(s)
	case phaseCreated:
		return decideCreated(s)
	}
	return decideRenamed(s)
}

// decideBegin decides for an object without an unfinished renaming.
func decideBegin(s situation) decision {
	switch {
	case s.journal != nil && s.nameText() == s.proposed && s.journal.To == s.proposed:
		return endWith(stepEnd, PhaseRenamed, nil, "") // the answer to the last write was lost
	case s.deleting:
		return endWith(stepEnd, PhaseSkipped, ReasonTerminating, "the managed resource is being deleted")
	case s.nameText() != s.current:
		return endWith(stepEnd, PhaseSkipped, ReasonChanged, "another client has changed the external name to %q since the plan", quote.Clip(s.nameText(), nameBytes))
	case s.paused:
		return endWith(stepEnd, PhaseSkipped, ReasonPaused, "another client has paused the managed resource since the plan")
	}
	return decision{step: stepPause}
}

// decidePaused decides for an object that waits for the provider to report the pause.
func decidePaused(s situation) decision {
	switch {
	case s.deleting:
		return endWith(stepAbandon, PhaseSkipped, ReasonTerminating, "the managed resource is being deleted")
	case !s.has(s.journal.From):
		return endWith(stepAbandon, PhaseSkipped, ReasonChanged, "another client has changed the external name to %q during the pause", quote.Clip(s.nameText(), nameBytes))
	case !s.paused:
		return endWith(stepAbandon, PhaseSkipped, ReasonChanged, "another client has ended the pause")
	case s.synced.Reason == managed.ReconcilePaused && len(s.identity) == 0:
		return endWith(stepAbandon, PhaseSkipped, ReasonNotObserved, "status.atProvider has no identity that the renaming could compare; the pause is removed, and the name is as before")
	case s.synced.Reason == managed.ReconcilePaused && s.trial:
		return decision{step: stepTry}
	case s.synced.Reason == managed.ReconcilePaused:
		return decision{step: stepRename}
	case s.expired:
		return endWith(stepAbandon, PhaseDeferred, ReasonNotPaused, "the provider did not report ReconcilePaused in time; the pause is removed, and the name is as before")
	}
	return decision{step: stepWait}
}

// decideRenamed decides for an object with the new name that waits for the proof.
func decideRenamed(s situation) decision {
	undo := func(reason *godwit.Reason, format string, args ...any) decision {
		return endWith(stepUndo, PhaseUndone, reason, "%s; the old name is restored%s", fmt.Sprintf(format, args...), s.written())
	}
	trial := s.journal.Phase == phaseObserving
	switch {
	case s.creations != s.journal.Creations: // first: the provider also writes the name of what it creates
		return decision{step: stepHold}
	case trial && s.nameText() != s.journal.To: // the provider, too, may write another form of an unproven name
		return undo(ReasonChanged, "the external name became %q: another client, or the provider, has changed it before the new name was proven", quote.Clip(s.nameText(), nameBytes))
	case s.nameText() != s.journal.To:
		return endWith(stepAbandon, PhaseSkipped, ReasonChanged, "the external name is %q now: another client, or the provider, has changed it after the renaming", quote.Clip(s.nameText(), nameBytes))
	case s.deleting: // the provider deletes what the name identifies, which is not proven
		return endWith(stepUndo, PhaseSkipped, ReasonTerminating, "the managed resource is being deleted; the old name is restored")
	case trial && !slices.Equal(s.policies, managed.ObserveOnly):
		return undo(ReasonChanged, "another client has changed spec.managementPolicies to %s before the new name was proven", strings.Join(s.policies, ","))
	case s.synced.Status == "True" && s.synced.Reason == managed.ReconcileSuccess:
		if len(s.journal.Identity) == 0 {
			return undo(ReasonNotObserved, "status.atProvider had no identity that the renaming could compare")
		}
		if fields := managed.Differing(s.journal.Identity, s.identity); len(fields) > 0 {
			return undo(ReasonIdentityChanged, "status.atProvider differs in %s", strings.Join(fields, ", "))
		}
		return decision{step: stepProve, phase: PhaseRenamed}
	case trial && s.synced.Reason == managed.ReconcileError && strings.Contains(s.synced.Message, managed.DoesNotExist):
		return undo(ReasonNoExternalResource, "the provider finds no external resource %q: %s", quote.Clip(s.journal.To, nameBytes), s.synced)
	case trial && s.synced.Reason == managed.ReconcileError && strings.Contains(s.synced.Message, managed.PoliciesOff):
		return undo(ReasonNotReconciled, "the provider runs without management policies: %s", s.synced)
	}
	if s.expired {
		return undo(ReasonNotReconciled, "the provider did not report ReconcileSuccess in time: %s", s.synced)
	}
	return decision{step: stepWait}
}

// written is the part of a message that says which external resource the provider may have written.
func (s situation) written() string {
	if s.journal.Phase == phaseObserving {
		return ""
	}
	return fmt.Sprintf("; until then the provider may have written the external resource %q", quote.Clip(s.journal.To, nameBytes))
}

// decideCreated decides for an object that is paused since its provider has begun to create an external resource. The provider
// writes the name of what it has created, and writes again what it has read before, until the outcome of the creation is recorded:
// an earlier undo would not last.
func decideCreated(s situation) decision {
	switch {
	case !s.paused:
		return decision{step: stepHold}
	case !s.creationUnknown && s.synced.Reason == managed.ReconcilePaused:
		second := *s.journal
		second.Second = s.nameText()
		created := "created another one"
		if s.creationFailed && s.nameText() == s.journal.To {
			created = "its creation of another one failed, which may exist all the same"
		}
		return endWith(stepAccount, PhaseUndone, ReasonCreated, "the provider found no external resource %q, and %s. %s; the old name is restored",
			quote.Clip(s.journal.To, nameBytes), created, second.doubled())
	case s.expired:
		return endWith(stepEnd, PhaseFailed, ReasonCreated, "the provider found no external resource %q, and began to create one, whose outcome is not recorded. The managed resource is paused, and its old name is %q. Run again when the provider runs; if the outcome stays unknown, see whether the external resource exists, and remove the annotation crossplane.io/external-create-pending",
			quote.Clip(s.journal.To, nameBytes), quote.Clip(s.journal.from(), nameBytes))
	}
	return decision{step: stepWait}
}
