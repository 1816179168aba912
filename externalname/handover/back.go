package handover

import (
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/internal/quote"
)

// decideBack decides the next step of a rollback. The replacement is paused before the original may write again. It is pure.
func decideBack(s situation) decision {
	if d, damaged := s.unreadable(); damaged {
		return d
	}
	begun := s.to.journal != nil && s.to.journal.Other == s.pair.From
	switch {
	case !begun && s.from.journal != nil && s.to.mayWrite():
		return s.adoptedByOther()
	case !begun && s.from.journal != nil: // the replacement was deleted
		return endWith(stepTakeBack, fleet.PhaseRolledBack, nil, "")
	case !begun:
		return endWith(stepEnd, fleet.PhaseRolledBack, nil, "") // the answer to the last write was lost
	case s.to.in(phaseObserving) && s.from.journal == nil:
		return endWith(stepReturn, fleet.PhaseRolledBack, nil, "")
	case !s.from.exists || s.from.deleting:
		return skip(ReasonLastOne, "%s is deleted, and %s alone has the external resource %q", s.pair.From, s.pair.To, quote.Clip(s.to.nameText(), nameBytes))
	case s.to.in(phaseReturning) && s.from.journal == nil:
		return endWith(stepReturn, fleet.PhaseRolledBack, nil, "")
	case !s.to.paused, !s.to.in(phaseReturning):
		return decision{step: stepHold}
	case s.to.reportsPause():
		return decision{step: stepTakeBack}
	case s.expired:
		return endWith(stepEnd, fleet.PhaseDeferred, fleet.ReasonNotPaused, "the provider of %s did not report ReconcilePaused in time; %s only observes until the rollback has ended", s.pair.To, s.pair.From)
	}
	return decision{step: stepWait}
}
