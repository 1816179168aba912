package externalname_test

import (
	"context"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/handover"
	"github.com/godwit-dev/godwit/test/fault"
)

// replacements creates a paused person for each of the others, with its spec.
func (w *world) replacements(all []*person) ([]*person, []handover.Pair) {
	w.t.Helper()
	persons, pairs := make([]*person, len(all)), make([]handover.Pair, len(all))
	for i, old := range all {
		persons[i] = w.person("replacement-of-"+old.Name, func(p *person) {
			p.Spec.ForProvider = old.Spec.ForProvider
			meta.AddAnnotations(p, map[string]string{meta.AnnotationKeyReconciliationPaused: "true"})
		})
		pairs[i] = handover.Pair{
			From: handover.Object{Resource: "persons.example.org", Namespace: w.namespace, Name: old.Name},
			To:   handover.Object{Resource: "persons.example.org", Namespace: w.namespace, Name: persons[i].Name}, ExternalName: meta.GetExternalName(get(w, old)),
		}
	}
	return persons, pairs
}

func (w *world) handover(wire *fault.Transport) *handover.Handover {
	w.t.Helper()
	h, err := handover.New(wire.Config(shared.Config()), personKind, personKind, handover.Options{Identity: fleet.Identity{Fields: []string{"name"}}})
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// TestHandover: the replacements manage the external resources, and the deletion of the originals deletes nothing.
func TestHandover(t *testing.T) {
	w := newWorld(t)
	old := w.plainPersons(3, 0)
	persons, pairs := w.replacements(old)
	h := w.handover(&fault.Transport{})
	for _, want := range []fleet.Phase{fleet.PhaseHandedOver, fleet.PhaseUnchanged} {
		r, err := h.Run(t.Context(), pairs)
		if err != nil || r.Count(want) != int64(len(pairs)) {
			t.Fatalf("%v: %+v", err, r)
		}
	}
	for i, p := range persons {
		w.delete(old[i])
		w.awaitGone(old[i])
		w.patch(p, `{"spec":{"forProvider":{"title":"manager"}}}`)
		w.awaitPerson(p, "written by its provider", func(p *person) bool { return synced(p) && p.Status.AtProvider.Title == "manager" })
		if name := meta.GetExternalName(p); name != pairs[i].ExternalName {
			t.Errorf("%s has the external name %q, want %q", p.Name, name, pairs[i].ExternalName)
		}
	}
	w.checkEntries(len(pairs))
	if r, err := h.Rollback(t.Context(), pairs); err != nil || r.Results[0].Reason != handover.ReasonLastOne {
		t.Errorf("a rollback without originals: %v, %+v", err, r)
	}
}

// TestHandoverIsReturned by a rollback: the original manages the external resource again, and the replacement is paused.
func TestHandoverIsReturned(t *testing.T) {
	w := newWorld(t)
	old := w.plainPersons(1, 0)
	persons, pairs := w.replacements(old)
	h := w.handover(&fault.Transport{})
	if r, err := h.Run(t.Context(), pairs); err != nil || r.Count(fleet.PhaseHandedOver) != 1 {
		t.Fatalf("%v: %+v", err, r)
	}
	if r, err := h.Rollback(t.Context(), pairs); err != nil || r.Count(fleet.PhaseRolledBack) != 1 {
		t.Fatalf("%v: %+v", err, r)
	}
	if p := get(w, persons[0]); !meta.IsPaused(p) || meta.GetExternalName(p) != "" || !strings.Contains(p.Annotations[handover.AnnotationHandover], "Returned") {
		t.Errorf("the replacement has the annotations %v", p.Annotations)
	}
	w.patch(old[0], `{"spec":{"forProvider":{"title":"manager"}}}`)
	w.awaitPerson(old[0], "written by its provider", func(p *person) bool { return synced(p) && p.Status.AtProvider.Title == "manager" })
	w.checkEntries(1)
}

// TestHandoverToAnotherResource: a replacement under whose name its provider finds nothing, or another external resource, is
// paused again, and nothing is created.
func TestHandoverToAnotherResource(t *testing.T) {
	for reason, pointTo := range map[*string]func(w *world, pair *handover.Pair){
		&handover.ReasonNothingFound.Name: func(w *world, pair *handover.Pair) {
			pair.ExternalName = unknownID
		},
		&handover.ReasonOtherResource.Name: func(w *world, pair *handover.Pair) {
			pair.ExternalName = w.add(entry{Name: "foreign"}).ID
		},
	} {
		t.Run(*reason, func(t *testing.T) {
			w := newWorld(t)
			old := w.plainPersons(2, 0)
			persons, pairs := w.replacements(old)
			pointTo(w, &pairs[0])
			w.patch(old[0], `{"metadata":{"annotations":{"crossplane.io/paused":"true","crossplane.io/external-name":"`+pairs[0].ExternalName+`"}}}`)
			entries := len(w.memory.all())
			r, err := w.handover(&fault.Transport{}).Run(t.Context(), pairs)
			if err != nil || r.Results[0].Phase != fleet.PhaseUndone || r.Results[0].Reason.Name != *reason || !r.Stopped {
				t.Fatalf("%v: %+v", err, r.Results[0])
			}
			w.passes(3)
			if p := get(w, persons[0]); !meta.IsPaused(p) || meta.GetExternalName(p) != "" || !strings.Contains(p.Annotations[handover.AnnotationHandover], "Returned") {
				t.Errorf("the replacement has the annotations %v", p.Annotations)
			}
			w.checkEntries(entries)
		})
	}
}

// TestHandoverResumes after any fault of any of its four writes.
func TestHandoverResumes(t *testing.T) {
	const writes = 4
	w := newWorld(t)
	old := w.plainPersons(writes*len(fault.All()), 0)
	persons, pairs := w.replacements(old)
	next := 0
	for name, one := range fault.All() {
		for at := range writes {
			i := next
			next++
			var first fleet.Report
			wire := &fault.Transport{At: at, Fault: one}
			wire.Run(t.Context(), func(ctx context.Context) { first, _ = w.handover(wire).Run(ctx, pairs[i:i+1]) })
			r, err := w.handover(&fault.Transport{}).Run(t.Context(), pairs[i:i+1])
			if err != nil || r.Count(fleet.PhaseHandedOver)+r.Count(fleet.PhaseUnchanged) != 1 {
				t.Errorf("write %d %s: %v: %+v; before: %+v", at, name, err, r.Results[0], first.Results[0])
				continue
			}
			p, original := get(w, persons[i]), get(w, old[i])
			if p.Spec.ManagementPolicies[0] != xpv2.ManagementActionAll || original.Spec.ManagementPolicies[0] != xpv2.ManagementActionObserve || meta.IsPaused(p) || meta.IsPaused(original) {
				t.Errorf("write %d %s: the policies are %v, and %v of the original", at, name, p.Spec.ManagementPolicies, original.Spec.ManagementPolicies)
			}
			if killed := strings.HasPrefix(name, "killed"); killed && at > 0 && at < 3 && !first.Results[0].Unfinished {
				t.Errorf("write %d %s: it does not say what is held: %+v", at, name, first.Results[0])
			}
		}
	}
	w.checkEntries(len(pairs))
}
