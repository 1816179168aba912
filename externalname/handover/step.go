package handover

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/quote"
)

// step is a step of a handover, or of its rollback.
type step string

const (
	// stepWait waits for a provider.
	stepWait step = "Wait"
	// stepObserve gives the replacement the name, allows its provider to observe alone, and ends its pause.
	stepObserve step = "Observe"
	// stepPause pauses the original.
	stepPause step = "Pause"
	// stepRelease allows the provider of the original to observe alone, and ends its pause.
	stepRelease step = "Release"
	// stepAdopt gives the replacement its management policies back.
	stepAdopt step = "Adopt"
	// stepHold pauses the replacement for a rollback.
	stepHold step = "Hold"
	// stepTakeBack restores the original as it was.
	stepTakeBack step = "TakeBack"
	// stepReturn pauses the replacement, and takes its name. It only observes, until it is handed over to again.
	stepReturn step = "Return"
	// stepEnd writes nothing.
	stepEnd step = "End"
)

// onOriginal reports whether a step writes to the original.
func (s step) onOriginal() bool { return s == stepPause || s == stepRelease || s == stepTakeBack }

// decision is a step, and the phase and the reason of the result if the step ends the handover.
type decision struct {
	step    step
	phase   fleet.Phase
	reason  *godwit.Reason
	message string
	// about is the managed resource of a damaged journal.
	about Object
}

func endWith(s step, p fleet.Phase, reason *godwit.Reason, format string, args ...any) decision {
	return decision{step: s, phase: p, reason: reason, message: fmt.Sprintf(format, args...)}
}

func skip(reason *godwit.Reason, format string, args ...any) decision {
	return endWith(stepEnd, fleet.PhaseSkipped, reason, format, args...)
}

// nameBytes bounds a name in a message.
const nameBytes = 64

// decide decides the next step of a handover. It is pure.
func decide(s situation) decision {
	if d, damaged := s.unreadable(); damaged {
		return d
	}
	if d, other := s.ofAnother(); other {
		return d
	}
	switch {
	case s.to.in(phaseAdopted):
		return endWith(stepEnd, fleet.PhaseUnchanged, nil, "")
	case s.to.in(phaseReturning):
		return skip(ReasonReturning, "a rollback has paused %s and not ended", s.pair.To)
	case s.from.journal != nil && s.to.mayWrite():
		return s.adoptedByOther()
	case s.to.in(phaseObserving):
		return decideObserving(s)
	case s.from.in(phaseReleased): // a user has deleted the replacement, or its annotation, maybe with the external resource
		return skip(ReasonReplacementGone, "%s was handed over to %s, which does not exist any more, or has lost its annotation: %s only observes", s.pair.From, s.pair.To, s.pair.From)
	case s.from.in(phasePausing) && s.to.rests():
		return decision{step: stepTakeBack}
	case s.from.in(phasePausing):
		return s.waitFor(endWith(stepEnd, fleet.PhaseDeferred, fleet.ReasonNotPaused, "the provider of %s did not report ReconcilePaused in time", s.pair.To))
	}
	return decideBegin(s)
}

// ofAnother refuses a pair of which one is a part of another handover.
func (s situation) ofAnother() (decision, bool) {
	for _, one := range []struct {
		side
		self, other Object
		asOriginal  bool
	}{{s.from, s.pair.From, s.pair.To, true}, {s.to, s.pair.To, s.pair.From, false}} {
		j := one.journal
		if j == nil || j.Phase == phaseReturned || j.Other == one.other && j.replacement() != one.asOriginal {
			continue
		}
		d := skip(ReasonOtherHandover, "%s is in a handover with %s", one.self, j.Other)
		if j.replacement() {
			d = skip(ReasonOtherHandover, "%s has its external resource from a handover by %s", one.self, j.Other)
		}
		d.about = one.self
		return d, true
	}
	return decision{}, false
}

// waitFor waits until the time of the provider is over, and then returns a decision.
func (s situation) waitFor(d decision) decision {
	if s.expired {
		return d
	}
	return decision{step: stepWait}
}

// unreadable returns the decision for a journal that can't be read. It returns false if both can.
func (s situation) unreadable() (decision, bool) {
	switch {
	case s.from.journalErr != nil:
		return damaged(s.pair.From, s.from.journalErr), true
	case s.to.journalErr != nil:
		return damaged(s.pair.To, s.to.journalErr), true
	}
	return decision{}, false
}

// damaged returns the decision for a journal that can't be read.
func damaged(o Object, err error) decision {
	d := endWith(stepEnd, fleet.PhaseFailed, ReasonUnreadable, "the annotation %s of %s can't be read: %s", AnnotationHandover, o, quote.Line(err.Error()))
	if errors.As(err, new(*format.NewerError)) {
		d.reason, d.message = fleet.ReasonNewerFormat, err.Error()
	}
	d.about = o
	return d
}

// decideBegin decides for a pair whose handover has not begun.
func decideBegin(s situation) decision {
	if d, refused := s.refuse(); refused {
		return d
	}
	switch {
	case !s.to.has(s.pair.ExternalName) && s.to.created:
		return skip(ReasonOwnResource, "%s has created an external resource, or has begun to: its external name is %q", s.pair.To, quote.Clip(s.to.nameText(), nameBytes))
	case !s.to.paused:
		return skip(fleet.ReasonNotPausedYet, "%s is not paused, so that its provider may create another external resource", s.pair.To)
	case !s.to.has(s.pair.ExternalName) && s.to.nameText() != "" && !s.overwrite:
		return skip(fleet.ReasonNameDiffers, "%s has the external name %q, and the saved one is %q", s.pair.To, quote.Clip(s.to.nameText(), nameBytes), quote.Clip(s.pair.ExternalName, nameBytes))
	case len(s.from.identity) == 0:
		return skip(ReasonNothingToCompare, "status.atProvider of %s has no field that identifies the external resource", s.pair.From)
	case s.to.reportsPause():
		return decision{step: stepObserve}
	}
	return s.waitFor(endWith(stepEnd, fleet.PhaseDeferred, fleet.ReasonNotPaused, "the provider of %s did not report ReconcilePaused in time", s.pair.To))
}

// refuse refuses a pair that can't be handed over.
func (s situation) refuse() (decision, bool) {
	if !s.to.exists {
		return skip(ReasonNoReplacement, "%s does not exist", s.pair.To), true
	}
	if !s.from.exists {
		return skip(ReasonNoOriginal, "%s does not exist", s.pair.From), true
	}
	for _, one := range []struct {
		side
		Object
	}{{s.to, s.pair.To}, {s.from, s.pair.From}} {
		switch policies := one.before(); {
		case one.deleting:
			return skip(fleet.ReasonTerminating, "%s is being deleted", one.Object), true
		case one.renaming:
			return skip(ReasonRenamingUnfinished, "a renaming of %s has not ended", one.Object), true
		case policies == nil:
			return skip(ReasonNoPolicies, "%s has no spec.managementPolicies", one.Object), true
		case len(policies) == 0, slices.Equal(policies, managed.ObserveOnly):
			return skip(ReasonOnlyObserves, "spec.managementPolicies of %s is [%s]", one.Object, strings.Join(policies, ",")), true
		case one.source != "":
			return skip(ReasonPoliciesApplied, "%s applies spec.managementPolicies or the pause of %s", one.source, one.Object), true
		}
	}
	switch {
	case s.to.mayDelete && !s.from.mayDelete:
		return skip(ReasonMayDelete, "the deletion of %s would delete the external resource, and that of %s does not", s.pair.To, s.pair.From), true
	case !s.from.has(s.pair.ExternalName):
		return skip(fleet.ReasonChanged, "%s has the external name %q, and the saved one is %q", s.pair.From, quote.Clip(s.from.nameText(), nameBytes), quote.Clip(s.pair.ExternalName, nameBytes)), true
	}
	return decision{}, false
}

// decideObserving decides for a pair whose replacement only observes.
func decideObserving(s situation) decision {
	changed := func(what string) decision { return s.undo(fleet.ReasonChanged, "another client has %s", what) }
	switch {
	case s.to.deleting:
		return s.undo(fleet.ReasonTerminating, "%s is being deleted", s.pair.To)
	case !s.to.has(s.pair.ExternalName):
		return changed(fmt.Sprintf("changed the external name of %s to %q", s.pair.To, quote.Clip(s.to.nameText(), nameBytes)))
	case !s.to.observes():
		return changed(fmt.Sprintf("changed spec.managementPolicies of %s to %s", s.pair.To, strings.Join(s.to.policies, ",")))
	case s.to.paused:
		return changed(fmt.Sprintf("paused %s", s.pair.To))
	case !s.from.exists: // its deletion may have deleted the external resource, after the replacement has last observed it
		return s.undo(ReasonNoOriginal, "%s was deleted before the handover had ended", s.pair.From)
	case !s.from.has(s.pair.ExternalName):
		return changed(fmt.Sprintf("changed the external name of %s to %q", s.pair.From, quote.Clip(s.from.nameText(), nameBytes)))
	case s.from.in(phaseReleased) && !s.from.observes():
		return changed(fmt.Sprintf("changed spec.managementPolicies of %s to %s", s.pair.From, strings.Join(s.from.policies, ",")))
	case s.from.deleting && !s.from.in(phaseReleased):
		return s.undo(fleet.ReasonTerminating, "%s is being deleted", s.pair.From)
	}
	if d, waits := decideProof(s); waits {
		return d
	}
	return decideOriginal(s)
}

// decideOriginal decides what the original waits for, when its replacement is proven. A pause that was reported before the present one
// proves nothing, so that each report must follow another one.
func decideOriginal(s situation) decision {
	stale := !s.from.paused && s.from.synced.Reason == managed.ReconcilePaused
	notSeen := func() decision {
		return s.undo(ReasonNotReconciled, "the provider of %s did not reconcile it in time after an earlier pause", s.pair.From)
	}
	switch {
	case s.from.in(phaseReleased) && stale:
		return s.waitFor(endWith(stepEnd, fleet.PhaseDeferred, ReasonNotReconciled, "the provider of %s has not reconciled it since it may only observe", s.pair.From))
	case s.from.in(phaseReleased):
		return decision{step: stepAdopt, phase: fleet.PhaseHandedOver}
	case s.from.busy:
		return s.waitFor(s.undo(ReasonOperationRuns, "the provider of %s has begun an operation that has not ended", s.pair.From))
	case s.from.journal == nil && stale:
		return s.waitFor(notSeen())
	case s.from.journal == nil:
		return decision{step: stepPause}
	case !s.from.paused:
		return s.undo(fleet.ReasonChanged, "another client has ended the pause of %s", s.pair.From)
	case s.from.reportsPause():
		return decision{step: stepRelease}
	}
	return s.waitFor(s.undo(fleet.ReasonNotPaused, "the provider of %s did not report ReconcilePaused in time", s.pair.From))
}

// decideProof decides while it is not proven that the replacement has the same external resource. It returns false when it is.
func decideProof(s situation) (d decision, waits bool) {
	synced := s.to.synced
	success := synced.Status == "True" && synced.Reason == managed.ReconcileSuccess
	var differing []string
	proven := false
	if success {
		differing, proven = s.compare()
	}
	switch {
	case len(differing) > 0:
		return s.undo(ReasonOtherResource, "status.atProvider of %s differs from that of %s in %s", s.pair.To, s.pair.From, strings.Join(differing, ", ")), true
	case proven:
		return decision{}, false
	case success && s.expired: // not before: crossplane-runtime drops what it has observed when it adds its finalizer
		return s.undo(ReasonNothingToCompare, "status.atProvider of %s and of %s has no field in common that identifies the external resource", s.pair.To, s.pair.From), true
	case synced.Reason == managed.ReconcileError && strings.Contains(synced.Message, managed.DoesNotExist):
		return s.undo(ReasonNothingFound, "the provider of %s finds no external resource %q: %s", s.pair.To, quote.Clip(s.pair.ExternalName, nameBytes), synced), true
	case synced.Reason == managed.ReconcileError && strings.Contains(synced.Message, managed.PoliciesOff):
		return s.undo(ReasonNoPolicies, "the provider of %s runs without management policies: %s", s.pair.To, synced), true
	case s.expired:
		return s.undo(ReasonNotReconciled, "the provider of %s did not report ReconcileSuccess in time: %s", s.pair.To, synced), true
	}
	return decision{step: stepWait}, true
}

// undo restores the original as it was. The replacement is paused again, without the name, and only observes.
func (s situation) undo(reason *godwit.Reason, format string, args ...any) decision {
	result := "is paused again, and only observes"
	if s.to.deleting {
		result = "only observes, so that its deletion deletes nothing"
	}
	original := ""
	if s.from.exists {
		original = fmt.Sprintf(", and %s is as it was", s.pair.From)
	}
	return endWith(stepReturn, fleet.PhaseUndone, reason, "%s; %s %s%s", fmt.Sprintf(format, args...), s.pair.To, result, original)
}

// adoptedByOther leaves a pair alone whose replacement another client has allowed to write, while the original only observes.
func (s situation) adoptedByOther() decision {
	return skip(fleet.ReasonChanged, "another client has given %s its management policies, and %s is paused or only observes", s.pair.To, s.pair.From)
}

// first returns the step before a decision: the replacement is returned after the original has its management policies back.
func (d decision) first(s situation) decision {
	if d.step == stepReturn && s.held() {
		return decision{step: stepTakeBack}
	}
	return d
}

// fixOf returns the fix for a pair; nil if that of the reason names no object.
func fixOf(d decision, p Pair) godwit.Fix {
	switch d.reason {
	case ReasonNoOriginal:
		return bind(godwit.Object(p.To), p.ExternalName)
	case ReasonOwnResource:
		return startAnew(godwit.Object(p.To))
	case ReasonUnreadable:
		return removeJournal(godwit.Object(d.about))
	case ReasonOtherHandover:
		return endOther(godwit.Object(d.about))
	case ReasonReplacementGone:
		return returnTo(godwit.Object(p.From))
	case ReasonLastOne:
		return keepLast(godwit.Object(p.To))
	}
	return nil
}

// Part is what the annotation of a managed resource says of its handover.
type Part struct {
	Pair
	// Ended means that the handover has no further step.
	Ended bool
	// Returned means that the managed resource is the replacement of a handover that was undone or rolled back.
	Returned bool
}

// PartOf returns of which handover a managed resource is a part; nil without one. It returns a finding if the annotation can't be read.
func PartOf(resource string, o *unstructured.Unstructured) (*Part, *godwit.Finding) {
	m, self := managed.Of(o), Object{resource, o.GetNamespace(), o.GetName()}
	j, err := readJournal(m)
	switch {
	case err != nil:
		d := damaged(self, err)
		return nil, &godwit.Finding{Reason: d.reason, Message: d.message, Fix: fixOf(d, Pair{})}
	case j == nil:
		return nil, nil
	}
	p := &Part{Pair: Pair{From: j.Other, To: self}, Returned: j.Phase == phaseReturned}
	if !j.replacement() {
		p.From, p.To = self, j.Other
	}
	p.Ended = slices.Contains([]phase{phaseAdopted, phaseReleased, phaseReturned}, j.Phase)
	if name := m.ExternalName(); name != nil {
		p.ExternalName = *name
	}
	return p, nil
}
