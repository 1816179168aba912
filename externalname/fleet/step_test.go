package fleet

import (
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
)

func managedWith(annotations map[string]string) managed.Resource {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAnnotations(annotations)
	return managed.Of(o)
}

// at is a managed resource whose renaming from a to b has got to a phase.
func at(p phase, change func(*situation)) situation {
	s := situation{exists: true, name: new("a"), current: "a", proposed: "b", identity: map[string]string{"id": "1"}, policies: []string{"*"}, trial: true}
	switch p {
	case phasePausing:
		s.journal, s.paused = &journal{Phase: p, From: new("a"), To: "b"}, true
	case phaseObserving, phaseRenaming, phaseCreated:
		s.journal, s.name = &journal{Phase: p, From: new("a"), To: "b", Identity: map[string]string{"id": "1"}}, new("b")
		s.synced = managed.Condition{Status: "False", Reason: managed.ReconcilePaused, Message: ""}
		switch p {
		case phaseObserving:
			s.journal.Policies, s.policies = s.policies, managed.ObserveOnly
		case phaseCreated:
			s.paused, s.creations, s.creationUnknown = true, "now", true
		}
	case phaseDoubled:
		s.journal = &journal{Phase: p, From: new("a"), To: "b", Second: "c"}
	case phaseRenamed:
		s.journal, s.name = &journal{Phase: p, From: new("a"), To: "b"}, new("b")
	}
	if change != nil {
		change(&s)
	}
	return s
}

func TestNext(t *testing.T) {
	success := managed.Condition{Status: "True", Reason: managed.ReconcileSuccess, Message: ""}
	for reason, test := range map[string]struct {
		in     situation
		move   renameStep
		phase  Phase
		reason *godwit.Reason
	}{
		"new":                       {at("", nil), stepPause, "", nil},
		"gone":                      {situation{}, stepEnd, PhaseGone, nil},
		"deleted":                   {at("", func(s *situation) { s.deleting = true }), stepEnd, PhaseSkipped, ReasonTerminating},
		"renamed by another":        {at("", func(s *situation) { s.name = new("x") }), stepEnd, PhaseSkipped, ReasonChanged},
		"paused by another":         {at("", func(s *situation) { s.paused = true }), stepEnd, PhaseSkipped, ReasonPaused},
		"bad journal":               {at("", func(s *situation) { s.journalErr = errJournal }), stepEnd, PhaseFailed, ReasonJournalUnreadable},
		"pause not reported":        {at(phasePausing, nil), stepWait, "", nil},
		"pause not reported, late":  {at(phasePausing, func(s *situation) { s.expired = true }), stepAbandon, PhaseDeferred, ReasonNotPaused},
		"pause reported":            {at(phasePausing, func(s *situation) { s.synced.Reason = managed.ReconcilePaused }), stepTry, "", nil},
		"pause reported, late":      {at(phasePausing, func(s *situation) { s.synced.Reason = managed.ReconcilePaused; s.expired = true }), stepTry, "", nil},
		"pause, without a trial":    {at(phasePausing, func(s *situation) { s.synced.Reason, s.trial = managed.ReconcilePaused, false }), stepRename, "", nil},
		"unpaused by another":       {at(phasePausing, func(s *situation) { s.paused = false }), stepAbandon, PhaseSkipped, ReasonChanged},
		"renamed in the pause":      {at(phasePausing, func(s *situation) { s.name = new("x") }), stepAbandon, PhaseSkipped, ReasonChanged},
		"name removed in the pause": {at(phasePausing, func(s *situation) { s.name = nil }), stepAbandon, PhaseSkipped, ReasonChanged},
		"deleted in the pause":      {at(phasePausing, func(s *situation) { s.deleting = true }), stepAbandon, PhaseSkipped, ReasonTerminating},
		"no proof yet":              {at(phaseRenaming, nil), stepWait, "", nil},
		"an error is no end": {at(phaseRenaming, func(s *situation) {
			s.synced = managed.Condition{Status: "False", Reason: "ReconcileError", Message: "x"}
		}), stepWait, "", nil},
		"no proof, late": {at(phaseRenaming, func(s *situation) { s.expired = true }), stepUndo, PhaseUndone, ReasonNotReconciled},
		"proof":          {at(phaseRenaming, func(s *situation) { s.synced = success }), stepProve, PhaseRenamed, nil},
		"proof, late":    {at(phaseRenaming, func(s *situation) { s.synced = success; s.expired = true }), stepProve, PhaseRenamed, nil},
		"another resource": {at(phaseRenaming, func(s *situation) { s.synced, s.identity = success, map[string]string{"id": "2"} }),
			stepUndo, PhaseUndone, ReasonIdentityChanged},
		"a field is gone":                  {at(phaseRenaming, func(s *situation) { s.synced, s.identity = success, nil }), stepUndo, PhaseUndone, ReasonIdentityChanged},
		"created":                          {at(phaseRenaming, func(s *situation) { s.synced, s.creations = success, "now" }), stepHold, "", nil},
		"created and named":                {at(phaseRenaming, func(s *situation) { s.name, s.creations = new("c"), "now" }), stepHold, "", nil},
		"created in a trial":               {at(phaseObserving, func(s *situation) { s.creations = "now" }), stepHold, "", nil},
		"creation under way":               {at(phaseCreated, nil), stepWait, "", nil},
		"creation under way, late":         {at(phaseCreated, func(s *situation) { s.expired = true }), stepEnd, PhaseFailed, ReasonCreated},
		"creation ended":                   {at(phaseCreated, func(s *situation) { s.creationUnknown, s.name = false, new("c") }), stepAccount, PhaseUndone, ReasonCreated},
		"creation ended, provider at work": {at(phaseCreated, func(s *situation) { s.creationUnknown, s.synced = false, success }), stepWait, "", nil},
		"creation failed":                  {at(phaseCreated, func(s *situation) { s.creationUnknown, s.creationFailed = false, true }), stepAccount, PhaseUndone, ReasonCreated},
		"unpaused while it creates":        {at(phaseCreated, func(s *situation) { s.paused = false }), stepHold, "", nil},
		"paused, without an identity":      {at(phasePausing, func(s *situation) { s.synced.Reason, s.identity = managed.ReconcilePaused, nil }), stepAbandon, PhaseSkipped, ReasonNotObserved},
		"observed, without an identity":    {at(phaseObserving, func(s *situation) { s.synced, s.identity, s.journal.Identity = success, nil, nil }), stepUndo, PhaseUndone, ReasonNotObserved},
		"another form in a trial":          {at(phaseObserving, func(s *situation) { s.synced, s.name = success, new("B") }), stepUndo, PhaseUndone, ReasonChanged},
		"policies are off": {at(phaseObserving, func(s *situation) {
			s.synced = managed.Condition{Status: "False", Reason: managed.ReconcileError, Message: "`spec.managementPolicies` is set to a non-default value but the feature is not enabled: [Observe]"}
		}), stepUndo, PhaseUndone, ReasonNotReconciled},
		"doubled":  {at(phaseDoubled, nil), stepEnd, PhaseSkipped, ReasonSecondResource},
		"observed": {at(phaseObserving, func(s *situation) { s.synced = success }), stepProve, PhaseRenamed, nil},
		"not found": {at(phaseObserving, func(s *situation) {
			s.synced = managed.Condition{Status: "False", Reason: managed.ReconcileError, Message: "observe failed: external resource does not exist"}
		}), stepUndo, PhaseUndone, ReasonNoExternalResource},
		"observes another":   {at(phaseObserving, func(s *situation) { s.synced, s.identity = success, map[string]string{"id": "2"} }), stepUndo, PhaseUndone, ReasonIdentityChanged},
		"policies set back":  {at(phaseObserving, func(s *situation) { s.synced, s.policies = success, []string{"*"} }), stepUndo, PhaseUndone, ReasonChanged},
		"deleted in a trial": {at(phaseObserving, func(s *situation) { s.deleting = true }), stepUndo, PhaseSkipped, ReasonTerminating},
		"renamed again":      {at(phaseRenaming, func(s *situation) { s.name = new("x") }), stepAbandon, PhaseSkipped, ReasonChanged},
		"answer lost":        {at(phaseRenamed, nil), stepEnd, PhaseRenamed, nil},
		"a second renaming":  {at(phaseRenamed, func(s *situation) { s.current, s.proposed = "b", "c" }), stepPause, "", nil},
	} {
		t.Run(reason, func(t *testing.T) {
			d := decideStep(test.in)
			if d.step != test.move || d.phase != test.phase || d.reason != test.reason {
				t.Errorf("next is %s, %s, %q; want %s, %s, %q", d.step, d.phase, d.reason, test.move, test.phase, test.reason)
			}
			if d.reason != nil && d.message == "" {
				t.Error("the reason has no message")
			}
		})
	}
}

// TestTaskRemembersWhatItHasBegun: what happens to a managed resource meanwhile is not taken for its end.
func TestTaskRemembersWhatItHasBegun(t *testing.T) {
	for name, test := range map[string]struct {
		before phase
		now    situation
		phase  Phase
		reason *godwit.Reason
	}{
		"deleted in the pause":           {phasePausing, situation{}, PhaseGone, nil},
		"deleted while it is observed":   {phaseObserving, situation{}, PhaseFailed, ReasonDeletedUnproven},
		"deleted under an unproven name": {phaseRenaming, situation{}, PhaseFailed, ReasonDeletedUnproven},
		"rolled back by another client":  {phaseObserving, at("", nil), PhaseSkipped, ReasonChanged},
	} {
		one := &task{Result: &Result{}, created: &atomic.Bool{}}
		one.see(at(test.before, nil))
		if d := one.decide(test.now); d.phase != test.phase || d.reason != test.reason {
			t.Errorf("%s: %s, %s: %s", name, d.phase, d.reason, d.message)
		}
		if one.setUnfinished(PhaseFailed, ReasonUnanswered, "no answer"); !one.Unfinished || one.Message == "no answer" {
			t.Errorf("%s: it does not say what it holds: %s", name, one.Message)
		}
	}
	one := &task{Result: &Result{}, created: &atomic.Bool{}}
	if one.see(at(phaseCreated, nil)); !one.created.Load() {
		t.Error("a creation of an earlier run does not keep others from being renamed")
	}
}

// The old name comes back byte for byte, which may be without annotation.
func TestBack(t *testing.T) {
	for reason, test := range map[string]struct {
		in    situation
		name  *string // in the patch
		names bool    // the patch has the name
	}{
		"renamed":         {at(phaseRenamed, nil), new("a"), true},
		"without name":    {at(phaseRenamed, func(s *situation) { s.journal.From = nil }), nil, true},
		"renaming":        {at(phaseRenaming, nil), new("a"), true},
		"pausing":         {at(phasePausing, nil), nil, false},
		"another's name":  {at(phaseRenamed, func(s *situation) { s.name = new("x") }), nil, false},
		"rolled back now": {at("", nil), nil, false},
		"observing":       {at(phaseObserving, nil), new("a"), true},
		"creating":        {at(phaseCreated, nil), nil, false},
		"created":         {at(phaseRenaming, func(s *situation) { s.creations = "now" }), nil, false},
		"doubled":         {at(phaseDoubled, nil), nil, false},
		"created later":   {at(phaseRenamed, func(s *situation) { s.journal.Creations, s.creations = ",,", "now" }), nil, false},
		"another form":    {at(phaseObserving, func(s *situation) { s.name = new("B") }), new("a"), true},
	} {
		t.Run(reason, func(t *testing.T) {
			_, c := decideRollback(test.in)
			if c == nil {
				c = &managed.Changes{}
			}
			if restores := test.in.journal != nil && test.in.journal.Policies != nil; restores != (c.Policies != nil) {
				t.Errorf("the policies in the patch are %v", c.Policies)
			}
			name, names := c.Annotations[managed.AnnotationName]
			if names != test.names || (name == nil) != (test.name == nil) || name != nil && *name != *test.name {
				t.Errorf("the patch is %v", c)
			}
		})
	}
}
