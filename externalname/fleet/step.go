package fleet

import (
	"fmt"
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/quote"
)

// move is the next step of a renaming.
type move string

const (
	// moveWait: the provider has not answered yet.
	moveWait move = "Wait"
	// movePause writes the journal and the pause.
	movePause move = "Pause"
	// moveRename writes the new name and ends the pause.
	moveRename move = "Rename"
	// moveProve records that the external resource is the same.
	moveProve move = "Prove"
	// moveUndo writes the old name and removes the journal.
	moveUndo move = "Undo"
	// moveAbandon removes the journal and our pause, and leaves the name as it is.
	moveAbandon move = "Abandon"
	// moveEnd writes nothing.
	moveEnd move = "End"
)

// decision is a step, and the phase and the reason of the result if the step ends the renaming.
type decision struct {
	move    move
	phase   Phase
	reason  *godwit.Reason
	message string
}

func ends(m move, p Phase, reason *godwit.Reason, format string, args ...any) decision {
	return decision{m, p, reason, fmt.Sprintf(format, args...)}
}

// situation is what a renaming decides on.
type situation struct {
	// exists is false for an object that is gone, or that was created again.
	exists, deleting, paused bool
	name                     *string
	journal                  *journal
	journalErr               error
	synced                   condition
	identity                 map[string]string
	creations                string
	// current and proposed are the names by the plan.
	current, proposed string
	// expired means that the provider has had the time to answer.
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

// next decides the next step of a renaming. It is pure.
func next(s situation) decision {
	switch {
	case !s.exists:
		return ends(moveEnd, PhaseGone, nil, "the managed resource is deleted")
	case s.journalErr != nil:
		reason, message := unreadable(s.journalErr)
		return ends(moveEnd, PhaseFailed, reason, "%s", message)
	case s.journal == nil, s.journal.Phase == phaseRenamed:
		return begin(s)
	case s.journal.Phase == phasePausing:
		return paused(s)
	}
	return renamed(s)
}

// begin is for an object without a renaming under way.
func begin(s situation) decision {
	switch {
	case s.journal != nil && s.nameText() == s.proposed && s.journal.To == s.proposed:
		return ends(moveEnd, PhaseRenamed, nil, "") // the answer to the last write was lost
	case s.deleting:
		return ends(moveEnd, PhaseSkipped, ReasonTerminating, "the managed resource is being deleted")
	case s.nameText() != s.current:
		return ends(moveEnd, PhaseSkipped, ReasonChanged, "another client has changed the external name to %q since the plan", quote.Clip(s.nameText(), nameBytes))
	case s.paused:
		return ends(moveEnd, PhaseSkipped, ReasonPaused, "another client has paused the managed resource since the plan")
	}
	return decision{move: movePause}
}

// paused is for an object that waits for the provider to report the pause.
func paused(s situation) decision {
	switch {
	case s.deleting:
		return ends(moveAbandon, PhaseSkipped, ReasonTerminating, "the managed resource is being deleted")
	case !s.has(s.journal.From):
		return ends(moveAbandon, PhaseSkipped, ReasonChanged, "another client has changed the external name to %q during the pause", quote.Clip(s.nameText(), nameBytes))
	case !s.paused:
		return ends(moveAbandon, PhaseSkipped, ReasonChanged, "another client has ended the pause")
	case s.synced.reason == reconcilePaused:
		return decision{move: moveRename}
	case s.expired:
		return ends(moveAbandon, PhaseDeferred, ReasonNotPaused, "the provider did not report ReconcilePaused in time; the pause is removed, and the name is as before")
	}
	return decision{move: moveWait}
}

// renamed is for an object with the new name that waits for the proof.
func renamed(s situation) decision {
	switch {
	case s.nameText() != s.journal.To:
		return ends(moveAbandon, PhaseSkipped, ReasonChanged, "the external name is %q now: another client, or the provider, has changed it after the renaming", quote.Clip(s.nameText(), nameBytes))
	case s.creations != s.journal.Creations:
		return ends(moveUndo, PhaseUndone, ReasonCreated, "the provider found no external resource %q, and began to create one; the old name is restored", quote.Clip(s.journal.To, nameBytes))
	case s.synced.status == "True" && s.synced.reason == reconcileSuccess:
		if fields := differing(s.journal.Identity, s.identity); len(fields) > 0 {
			return ends(moveUndo, PhaseUndone, ReasonIdentityChanged, "status.atProvider differs in %s; the old name is restored", strings.Join(fields, ", "))
		}
		return decision{move: moveProve, phase: PhaseRenamed}
	case s.deleting:
		return ends(moveAbandon, PhaseSkipped, ReasonTerminating, "the managed resource is being deleted")
	case s.expired:
		return ends(moveUndo, PhaseUndone, ReasonNotReconciled, "the provider did not report ReconcileSuccess in time: %s; the old name is restored", lastWord(s.synced))
	}
	return decision{move: moveWait}
}

// lastWord is what the condition Synced says.
func lastWord(c condition) string {
	if c == (condition{}) {
		return "it has not written the condition Synced"
	}
	if c.message == "" {
		return "Synced is " + c.status + ", " + c.reason
	}
	return "Synced is " + c.status + ", " + c.reason + ": " + quote.Line(c.message)
}
