package handover

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
)

var pair = Pair{
	From: Object{"buckets.example.org", "", "one"}, To: Object{"buckets.m.example.org", "shop", "one"}, ExternalName: "b-1",
}

// world has an original, its replacement, and the external resource.
type world struct {
	From, To map[string]any // nil after a deletion
	// External means that the external resource exists. Other means that the replacement's ProviderConfig leads to another system, in
	// which another resource has the name. Absent means that no resource there has it.
	External, Other, Absent bool
	// ByUser means that a user has let the replacement write, or has deleted it with the external resource: what is created afterwards is as
	// the user wants.
	ByUser bool
}

func object(name *string, paused bool, policies ...any) map[string]any {
	annotations := map[string]any{}
	if name != nil {
		annotations[managed.AnnotationName] = *name
	}
	if paused {
		annotations[managed.AnnotationPaused] = "true"
	}
	return map[string]any{
		"metadata": map[string]any{"name": "one", "annotations": annotations}, "spec": map[string]any{"managementPolicies": policies, "forProvider": map[string]any{}},
	}
}

func start(change func(*world)) world {
	w := world{From: object(&pair.ExternalName, false, "*"), To: object(nil, true, "*"), External: true}
	w.provider(w.From, false)
	w.provider(w.To, true)
	change(&w)
	return w
}

func (w world) clone() world {
	for _, o := range []*map[string]any{&w.From, &w.To} {
		if *o != nil {
			*o = (&unstructured.Unstructured{Object: *o}).DeepCopy().Object
		}
	}
	return w
}

func (w world) key() string {
	text, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func resource(o map[string]any) managed.Resource {
	if o == nil {
		return managed.Resource{}
	}
	return managed.Of(&unstructured.Unstructured{Object: o})
}

func (w world) situation(expired bool) situation {
	return situation{pair: pair, from: sideOf(resource(w.From), managed.Identity{}, nil), to: sideOf(resource(w.To), managed.Identity{}, nil), expired: expired}
}

// provider reconciles a managed resource once, as crossplane-runtime does. It returns what must never happen.
func (w *world) provider(o map[string]any, replacement bool) (wrong string) {
	if o == nil {
		return ""
	}
	m := resource(o)
	elsewhere := replacement && (w.Other || w.Absent)
	exists := m.ExternalName() != nil && *m.ExternalName() == pair.ExternalName && (w.External || elsewhere) && !(replacement && w.Absent)
	synced := func(status, reason, message string) {
		_ = unstructured.SetNestedSlice(o, []any{map[string]any{"type": "Synced", "status": status, "reason": reason, "message": message}}, "status", "conditions")
	}
	switch observes := (side{policies: m.Policies()}).observes(); {
	case m.Paused():
		synced("False", managed.ReconcilePaused, "")
	case exists:
		if !observes && elsewhere {
			wrong = "the replacement writes to another external resource"
		}
		_ = unstructured.SetNestedField(o, fmt.Sprint("id-", elsewhere), "status", "atProvider", "id")
		synced("True", managed.ReconcileSuccess, "")
	case observes:
		synced("False", managed.ReconcileError, "observe failed: external resource "+managed.DoesNotExist)
	case !w.ByUser:
		wrong = "a provider creates a second external resource"
	}
	return wrong
}

// write executes a step.
func (w *world) write(t *testing.T, d decision, s situation) {
	t.Helper()
	c, err := changesFor(d.step, s)
	if err != nil {
		t.Fatalf("%v in %s", err, w.key())
	}
	o := w.To
	if d.step.onOriginal() {
		o = w.From
	}
	if o == nil {
		t.Fatalf("step %s writes to a deleted managed resource in %s", d.step, w.key())
	}
	annotations, _, _ := unstructured.NestedStringMap(o, "metadata", "annotations")
	for key, value := range c.Annotations {
		if value == nil {
			delete(annotations, key)
		} else {
			annotations[key] = *value
		}
	}
	_ = unstructured.SetNestedStringMap(o, annotations, "metadata", "annotations")
	if c.Policies != nil {
		_ = unstructured.SetNestedStringSlice(o, c.Policies, "spec", "managementPolicies")
	}
}

// deleteTo deletes the replacement, as deleteFrom does.
func (w *world) deleteTo() bool {
	s := w.situation(false)
	if !s.to.exists || s.to.paused {
		return false
	}
	if s.to.mayWrite() && !w.Other && !w.Absent {
		w.External, w.ByUser = false, true
	}
	w.To = nil
	return true
}

// adoptByUser gives the replacement its management policies, while it has the name.
func (w *world) adoptByUser() bool {
	s := w.situation(false)
	if !s.to.has(pair.ExternalName) || s.to.paused || !s.to.observes() || w.Other || w.Absent {
		return false
	}
	_ = unstructured.SetNestedStringSlice(w.To, []string{"*"}, "spec", "managementPolicies")
	w.ByUser = true
	return true
}

// deleteFrom deletes the original, whose provider deletes the external resource if it may. A pause holds the deletion.
func (w *world) deleteFrom() bool {
	s := w.situation(false)
	if !s.from.exists || s.from.paused {
		return false
	}
	w.External = w.External && s.from.observes()
	w.From = nil
	return true
}

// next returns the worlds that may follow: a run or a rollback that may begin at any moment makes one step, a provider reconciles,
// or a user deletes one of the two.
func (w world) next(t *testing.T) (following []world) {
	add := func(change func(*world) bool) {
		c := w.clone()
		if change(&c) {
			following = append(following, c)
		}
	}
	both := func(w *world) bool { s := w.situation(false); return s.from.mayWrite() && s.to.mayWrite() }
	for _, expired := range []bool{false, true} {
		for _, decide := range []func(situation) decision{decide, decideBack} {
			add(func(w *world) bool {
				s := w.situation(expired)
				d := decide(s).first(s)
				if d.step == stepWait || d.step == stepEnd {
					return false
				}
				before := both(w)
				w.write(t, d, s)
				if !before && both(w) {
					t.Errorf("step %s lets both write in %s", d.step, w.key())
				}
				return true
			})
		}
	}
	for _, replacement := range []bool{false, true} {
		add(func(w *world) bool {
			o := w.From
			if replacement {
				o = w.To
			}
			if wrong := w.provider(o, replacement); wrong != "" {
				t.Errorf("%s in %s", wrong, w.key())
			}
			return true
		})
	}
	add((*world).deleteFrom)
	add((*world).deleteTo)
	add((*world).adoptByUser)
	return following
}

// finish runs to the end, with providers that answer.
func (w world) finish(t *testing.T, decide func(situation) decision) (world, fleet.Phase) {
	t.Helper()
	w = w.clone()
	one := &task{Pair: pair, result: &fleet.Result{}}
	for range 30 {
		s := w.situation(false)
		d := one.next(s, decide)
		if d.step == stepEnd {
			return w, d.phase
		}
		if d.step != stepWait {
			w.write(t, d, s)
			if d.phase != "" {
				return w, d.phase
			}
		}
		for _, wrong := range []string{w.provider(w.From, false), w.provider(w.To, true)} {
			if wrong != "" {
				t.Errorf("%s in %s", wrong, w.key())
			}
		}
	}
	t.Errorf("it does not end in %s", w.key())
	return w, ""
}

// TestOneOfTwoWrites visits each state that runs and rollbacks, killed between any two steps, and deletions can lead to: never may
// both providers write, no provider creates or writes to another external resource, and each state has an end.
func TestOneOfTwoWrites(t *testing.T) {
	for name, first := range map[string]world{
		"same":   start(func(*world) {}),
		"other":  start(func(w *world) { w.Other = true }),
		"absent": start(func(w *world) { w.Absent = true }),
	} {
		t.Run(name, func(t *testing.T) {
			seen, queue := map[string]bool{}, []world{first}
			for len(queue) > 0 && !t.Failed() {
				w := queue[0]
				queue = queue[1:]
				if seen[w.key()] {
					continue
				}
				seen[w.key()] = true
				s := w.situation(false)
				if s.to.paused && s.to.deleting {
					t.Errorf("a deletion hangs in %s", w.key())
				}
				w.checkEnds(t)
				queue = append(queue, w.next(t)...)
			}
			if len(seen) < 5 {
				t.Errorf("%d states were visited", len(seen))
			}
		})
	}
}

// checkEnds finishes a handover, and rolls it back.
func (w world) checkEnds(t *testing.T) {
	t.Helper()
	ended, phase := w.finish(t, decide)
	s := ended.situation(false)
	if phase == fleet.PhaseHandedOver && (!s.to.mayWrite() || s.from.mayWrite() || ended.Other) {
		t.Errorf("handed over in %s, from %s", ended.key(), w.key())
	}
	if phase == fleet.PhaseUndone && (s.to.mayWrite() || s.to.exists && !s.to.in(phaseReturned) || s.from.exists && !s.from.mayWrite()) {
		t.Errorf("undone in %s, from %s", ended.key(), w.key())
	}
	back, phase := w.finish(t, decideBack)
	s = back.situation(false)
	if phase == fleet.PhaseRolledBack && (s.to.mayWrite() || s.from.journal != nil || s.from.exists && !s.from.mayWrite()) {
		t.Errorf("rolled back in %s, from %s", back.key(), w.key())
	}
}
