package handover

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/format/formattest"
)

// begun returns the situation before a handover.
func begun(change func(*situation)) situation {
	s := start(func(*world) {}).situation(false)
	s.from.identity = map[string]string{"id": "1", "size": "7"}
	change(&s)
	return s
}

// observing returns the situation when the replacement has been observed.
func observing(change func(*situation)) situation {
	s := begun(func(s *situation) {
		name := pair.ExternalName
		s.to.paused, s.to.name, s.to.policies = false, &name, managed.ObserveOnly
		s.to.synced = managed.Condition{Status: "True", Reason: managed.ReconcileSuccess}
		s.to.identity, s.to.proving = map[string]string{"id": "1"}, []string{"id"}
		s.to.journal = &journal{Phase: phaseObserving, Other: pair.From, Policies: []string{"*"}, Paused: true, Identity: s.from.identity}
	})
	change(&s)
	return s
}

func TestDecide(t *testing.T) {
	other := "another"
	failed := func(message string) managed.Condition {
		return managed.Condition{Status: "False", Reason: managed.ReconcileError, Message: message}
	}
	for name, test := range map[string]struct {
		s      situation
		step   step
		phase  fleet.Phase
		reason *godwit.Reason
	}{
		"begins":                       {begun(func(*situation) {}), stepObserve, "", nil},
		"no replacement":               {begun(func(s *situation) { s.to = side{} }), stepEnd, fleet.PhaseSkipped, ReasonNoReplacement},
		"no original":                  {begun(func(s *situation) { s.from = side{} }), stepEnd, fleet.PhaseSkipped, ReasonNoOriginal},
		"replacement is deleted":       {begun(func(s *situation) { s.to.deleting = true }), stepEnd, fleet.PhaseSkipped, fleet.ReasonTerminating},
		"original is deleted":          {begun(func(s *situation) { s.from.deleting = true }), stepEnd, fleet.PhaseSkipped, fleet.ReasonTerminating},
		"renamed since":                {begun(func(s *situation) { s.from.name = &other }), stepEnd, fleet.PhaseSkipped, fleet.ReasonChanged},
		"replacement without policies": {begun(func(s *situation) { s.to.policies = nil }), stepEnd, fleet.PhaseSkipped, ReasonNoPolicies},
		"original without":             {begun(func(s *situation) { s.from.policies = nil }), stepEnd, fleet.PhaseSkipped, ReasonNoPolicies},
		"source of the replacement":    {begun(func(s *situation) { s.to.source = "flux" }), stepEnd, fleet.PhaseSkipped, ReasonPoliciesApplied},
		"source of the original":       {begun(func(s *situation) { s.from.source = "flux" }), stepEnd, fleet.PhaseSkipped, ReasonPoliciesApplied},
		"has created":                  {begun(func(s *situation) { s.to.created = true }), stepEnd, fleet.PhaseSkipped, ReasonOwnResource},
		"not paused":                   {begun(func(s *situation) { s.to.paused = false }), stepEnd, fleet.PhaseSkipped, fleet.ReasonNotPausedYet},
		"has another name":             {begun(func(s *situation) { s.to.name = &other }), stepEnd, fleet.PhaseSkipped, fleet.ReasonNameDiffers},
		"overwrites another name":      {begun(func(s *situation) { s.to.name, s.overwrite = &other, true }), stepObserve, "", nil},
		"not observed":                 {begun(func(s *situation) { s.from.identity = nil }), stepEnd, fleet.PhaseSkipped, ReasonNothingToCompare},
		"pause is not reported":        {begun(func(s *situation) { s.to.synced = managed.Condition{} }), stepWait, "", nil},
		"pause is never reported":      {begun(func(s *situation) { s.to.synced, s.expired = managed.Condition{}, true }), stepEnd, fleet.PhaseDeferred, fleet.ReasonNotPaused},
		"another handover":             {observing(func(s *situation) { s.to.journal.Other.Name = "two" }), stepEnd, fleet.PhaseSkipped, ReasonOtherHandover},
		"proven by an identifier":      {observing(func(*situation) {}), stepPause, "", nil},
		"another resource":             {observing(func(s *situation) { s.to.identity["id"] = "2" }), stepReturn, fleet.PhaseUndone, ReasonOtherResource},
		"chosen field is missing":      {observing(func(s *situation) { s.chosen = true }), stepWait, "", nil},
		"no identifier yet":            {observing(func(s *situation) { s.to.identity = map[string]string{"size": "7"} }), stepWait, "", nil},
		"no identifier in common":      {observing(func(s *situation) { s.to.identity, s.expired = map[string]string{"size": "7"}, true }), stepReturn, fleet.PhaseUndone, ReasonNothingToCompare},
		"follows from the name":        {observing(func(s *situation) { s.to.proving = nil }), stepWait, "", nil},
		"chosen by the user":           {observing(func(s *situation) { s.chosen, s.to.proving, s.to.identity = true, nil, s.to.journal.Identity }), stepPause, "", nil},
		"an operation runs":            {observing(func(s *situation) { s.from.busy, s.expired = true, true }), stepReturn, fleet.PhaseUndone, ReasonOperationRuns},
		"an earlier pause":             {observing(func(s *situation) { s.from.synced.Reason = managed.ReconcilePaused }), stepWait, "", nil},
		"released, and not seen yet": {observing(func(s *situation) {
			s.from.journal, s.from.policies, s.from.synced.Reason = &journal{Phase: phaseReleased, Other: pair.To}, managed.ObserveOnly, managed.ReconcilePaused
		}), stepWait, "", nil},
		"released": {observing(func(s *situation) {
			s.from.journal, s.from.policies = &journal{Phase: phaseReleased, Other: pair.To}, managed.ObserveOnly
		}), stepAdopt, fleet.PhaseHandedOver, nil},
		"replacement is deleted after the handover": {begun(func(s *situation) {
			s.to, s.from.journal, s.from.policies = side{}, &journal{Phase: phaseReleased, Other: pair.To}, managed.ObserveOnly
		}), stepEnd, fleet.PhaseSkipped, ReasonReplacementGone},
		"handed over in the other direction": {begun(func(s *situation) { s.from.journal = &journal{Phase: phaseAdopted, Other: pair.To} }), stepEnd, fleet.PhaseSkipped, ReasonOtherHandover},
		"original of another handover": {begun(func(s *situation) {
			s.from.journal = &journal{Phase: phaseReleased, Other: Object{"x.example.org", "", "one"}}
		}), stepEnd, fleet.PhaseSkipped, ReasonOtherHandover},
		"was returned": {begun(func(s *situation) {
			s.to.journal, s.to.policies = &journal{Phase: phaseReturned, Other: pair.From, Policies: []string{"*"}}, managed.ObserveOnly
		}), stepObserve, "", nil},
		"a renaming has not ended":   {begun(func(s *situation) { s.from.renaming = true }), stepEnd, fleet.PhaseSkipped, ReasonRenamingUnfinished},
		"replacement only observes":  {begun(func(s *situation) { s.to.policies = managed.ObserveOnly }), stepEnd, fleet.PhaseSkipped, ReasonOnlyObserves},
		"original only observes":     {begun(func(s *situation) { s.from.policies = managed.ObserveOnly }), stepEnd, fleet.PhaseSkipped, ReasonOnlyObserves},
		"deletion is protected":      {begun(func(s *situation) { s.from.mayDelete = false }), stepEnd, fleet.PhaseSkipped, ReasonMayDelete},
		"not found":                  {observing(func(s *situation) { s.to.synced = failed("external resource does not exist") }), stepReturn, fleet.PhaseUndone, ReasonNothingFound},
		"policies are off":           {observing(func(s *situation) { s.to.synced = failed("is set to a non-default value") }), stepReturn, fleet.PhaseUndone, ReasonNoPolicies},
		"an error is no end":         {observing(func(s *situation) { s.to.synced = failed("timeout") }), stepWait, "", nil},
		"never reconciled":           {observing(func(s *situation) { s.to.synced, s.expired = failed("timeout"), true }), stepReturn, fleet.PhaseUndone, ReasonNotReconciled},
		"deleted while it is proven": {observing(func(s *situation) { s.from = side{} }), stepReturn, fleet.PhaseUndone, ReasonNoOriginal},
		"paused by another client":   {observing(func(s *situation) { s.to.paused = true }), stepReturn, fleet.PhaseUndone, fleet.ReasonChanged},
		"policies of another client": {observing(func(s *situation) { s.to.policies = []string{"*"} }), stepReturn, fleet.PhaseUndone, fleet.ReasonChanged},
		"damaged":                    {observing(func(s *situation) { s.to.journalErr = errJournal }), stepEnd, fleet.PhaseFailed, ReasonUnreadable},
		"rollback has begun":         {observing(func(s *situation) { s.to.journal.Phase = phaseReturning }), stepEnd, fleet.PhaseSkipped, ReasonReturning},
		"original is never paused": {observing(func(s *situation) {
			s.from.journal, s.from.paused, s.expired = &journal{Phase: phasePausing, Other: pair.To}, true, true
		}), stepReturn, fleet.PhaseUndone, fleet.ReasonNotPaused},
		"adopted by another client": {observing(func(s *situation) {
			s.from.journal, s.from.policies, s.to.policies = &journal{Phase: phaseReleased, Other: pair.To}, managed.ObserveOnly, []string{"*"}
		}), stepEnd, fleet.PhaseSkipped, fleet.ReasonChanged},
	} {
		d := decide(test.s)
		if d.step != test.step || d.phase != test.phase || d.reason != test.reason {
			t.Errorf("%s: %s, %s, %v: %s", name, d.step, d.phase, d.reason, d.message)
		}
	}
}

// TestDecideBack: the original gets its management policies back when its own replacement certainly does not write.
func TestDecideBack(t *testing.T) {
	adopted := func(change func(*situation)) situation {
		return observing(func(s *situation) {
			s.to.journal.Phase, s.to.policies = phaseAdopted, []string{"*"}
			s.from.journal, s.from.policies = &journal{Phase: phaseReleased, Other: pair.To, Policies: []string{"*"}}, managed.ObserveOnly
			change(s)
		})
	}
	paused := func(s *situation) {
		s.to.journal.Phase, s.to.paused, s.to.synced = phaseReturning, true, managed.Condition{Status: "False", Reason: managed.ReconcilePaused}
	}
	another := &journal{Phase: phaseReleased, Other: Object{"buckets.m.example.org", "shop", "two"}, Policies: []string{"*"}}
	for name, test := range map[string]struct {
		s      situation
		step   step
		phase  fleet.Phase
		reason *godwit.Reason
	}{
		"handed over":                    {adopted(func(*situation) {}), stepHold, "", nil},
		"an earlier pause":               {adopted(func(s *situation) { s.to.synced.Reason = managed.ReconcilePaused }), stepWait, "", nil},
		"paused":                         {adopted(paused), stepTakeBack, "", nil},
		"pause is not reported":          {adopted(func(s *situation) { paused(s); s.to.synced.Reason = managed.ReconcileSuccess }), stepWait, "", nil},
		"an operation runs":              {adopted(func(s *situation) { paused(s); s.to.busy, s.expired = true, true }), stepEnd, fleet.PhaseDeferred, ReasonOperationRuns},
		"taken back":                     {adopted(func(s *situation) { paused(s); s.from.journal = nil }), stepReturn, fleet.PhaseRolledBack, nil},
		"observing":                      {observing(func(*situation) {}), stepReturn, fleet.PhaseRolledBack, nil},
		"another one has it":             {observing(func(s *situation) { s.from.journal = another }), stepReturn, fleet.PhaseRolledBack, nil},
		"another one has it, and paused": {adopted(func(s *situation) { paused(s); s.from.journal = another }), stepReturn, fleet.PhaseRolledBack, nil},
		"original is deleted":            {adopted(func(s *situation) { s.from = side{} }), stepEnd, fleet.PhaseSkipped, ReasonLastOne},
		"original is deleted meanwhile":  {adopted(func(s *situation) { paused(s); s.from = side{} }), stepEnd, fleet.PhaseSkipped, ReasonLastOne},
		"replacement is deleted":         {adopted(func(s *situation) { s.to = side{} }), stepTakeBack, fleet.PhaseRolledBack, nil},
		"replacement writes on its own":  {adopted(func(s *situation) { s.to.journal = nil }), stepEnd, fleet.PhaseSkipped, fleet.ReasonChanged},
		"was returned":                   {adopted(func(s *situation) { s.to.journal.Phase, s.from.journal = phaseReturned, nil }), stepEnd, fleet.PhaseRolledBack, nil},
	} {
		d := decideBack(test.s).first(test.s)
		if d.step != test.step || d.phase != test.phase || d.reason != test.reason {
			t.Errorf("%s: %s, %s, %v: %s", name, d.step, d.phase, d.reason, d.message)
		}
	}
}

// TestJournalOfOtherReleases: the form of v0.1.0 is read and written, and a newer one is left alone.
func TestJournalOfOtherReleases(t *testing.T) {
	oldest := formattest.Frozen(t, "handover.json")
	want := formattest.Same[storedJournal](t, oldest).journal
	annotated := func(annotations map[string]string) managed.Resource {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetAnnotations(annotations)
		return managed.Of(o)
	}
	got, err := readJournal(annotated(map[string]string{AnnotationHandover: oldest}))
	if diff := cmp.Diff(&want, got); diff != "" || err != nil {
		t.Errorf("%v: (-want +got):\n%s", err, diff)
	}
	for name, annotations := range map[string]map[string]string{
		"journal":    {AnnotationHandover: formattest.Newer(t, "handover.json")},
		"annotation": {format.Annotation: "2"},
	} {
		s := observing(func(s *situation) { s.from = sideOf(annotated(annotations), managed.Identity{}, nil) })
		for what, decide := range map[string]func(situation) decision{"run": decide, "rollback": decideBack} {
			if d := decide(s); d.reason != fleet.ReasonNewerFormat || d.step != stepEnd || !strings.Contains(d.message, "has format") {
				t.Errorf("%s, %s: %+v", name, what, d)
			}
		}
	}
}
