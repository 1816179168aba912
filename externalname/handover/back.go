package handover

import (
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/quote"
)

// decideBack decides the next step of a rollback. The replacement is paused before the original may write again. It is pure.
func decideBack(s situation) decision {
	if d, damaged := s.unreadable(); damaged {
		return d
	}
	begun := s.to.journal != nil && s.to.journal.replacement() && !s.to.in(phaseReturned) && s.to.journal.Other == s.pair.From
	held := s.held()
	notPaused := endWith(stepEnd, fleet.PhaseDeferred, fleet.ReasonNotPaused, "the provider of %s did not report ReconcilePaused in time", s.pair.To)
	switch {
	case begun && s.to.in(phaseObserving) && !held, begun && s.to.in(phaseReturning) && !held && s.from.exists:
		return endWith(stepReturn, fleet.PhaseRolledBack, nil, "")
	case begun && (!s.from.exists || s.from.deleting):
		return decideLast(s)
	case begun:
		return decideHold(s, notPaused)
	case !held:
		return endWith(stepEnd, fleet.PhaseRolledBack, nil, "") // the answer to the last write was lost
	case s.to.mayWrite():
		return s.adoptedByOther()
	case !s.to.rests():
		return s.waitFor(notPaused)
	}
	return endWith(stepTakeBack, fleet.PhaseRolledBack, nil, "") // the replacement was deleted, or has lost its annotation
}

// decideLast decides for a replacement whose original was deleted.
func decideLast(s situation) decision {
	name := quote.Clip(s.to.nameText(), nameBytes)
	switch {
	case s.to.observes(): // it was never proven
		return endWith(stepReturn, fleet.PhaseSkipped, ReasonNoOriginal, "%s was deleted before the handover had ended", s.pair.From)
	case s.to.in(phaseReturning): // the original may have been deleted with the external resource, after it was taken back
		return skip(ReasonLastOne, "%s was deleted during a rollback, and %s is paused: the external resource %q may be deleted, too", s.pair.From, s.pair.To, name)
	}
	return skip(ReasonLastOne, "%s is deleted, and %s alone has the external resource %q", s.pair.From, s.pair.To, name)
}

// decideHold decides for a replacement that may write, until its provider reports the pause.
func decideHold(s situation, notPaused decision) decision {
	switch {
	case !s.to.paused && s.to.synced.Reason == managed.ReconcilePaused: // of an earlier pause
		return s.waitFor(notPaused)
	case !s.to.paused, !s.to.in(phaseReturning):
		return decision{step: stepHold}
	case s.to.busy:
		return s.waitFor(endWith(stepEnd, fleet.PhaseDeferred, ReasonOperationRuns, "the provider of %s has begun an operation that has not ended", s.pair.To))
	case s.to.reportsPause():
		return decision{step: stepTakeBack}
	}
	return s.waitFor(notPaused)
}
