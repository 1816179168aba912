package externalname_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// 35: a resource that is gone when DELETE arrives is deleted.
func TestDeleteNotFound(t *testing.T) {
	w := newWorld(t)
	run(w, persons(w.wire), options{})
	p := w.person("jane", nil)
	w.awaitPerson(p, "created", bound)
	id := meta.GetExternalName(p) // the hook runs while the test reads p again
	w.wire.set(func(_ context.Context, call string, send func() error) error {
		if call == "Remove" {
			w.store.change(id, func(*entry) bool { return false })
		}
		return send()
	})
	w.delete(p)
	w.awaitGone(p)
	w.checkEntries(0)
	if n := w.wire.count("Remove"); n != 1 {
		t.Errorf("%d deletions", n)
	}
	for _, message := range w.events.with("CannotDeleteExternalResource") {
		t.Errorf("an error was reported: %s", message)
	}
}

// 36: what is being deleted is not deleted again.
func TestDeleteOnce(t *testing.T) {
	w := newWorld(t)
	w.memory.slow = true
	run(w, persons(w.wire), options{})
	p := w.person("jane", nil)
	w.awaitPerson(p, "created", bound)
	w.delete(p)
	w.await("deletion", func() string {
		if w.wire.count("Remove") == 0 {
			return "none"
		}
		return ""
	})
	w.passes(4)
	if get(w, p); len(p.Finalizers) != 1 {
		t.Errorf("finalizers are %v while the resource exists", p.Finalizers)
	}
	if n := w.wire.count("Remove"); n != 1 {
		t.Errorf("%d deletions", n)
	}
	w.store.change(meta.GetExternalName(p), func(*entry) bool { return false })
	w.awaitGone(p)
}

// Without such a state, DELETE repeats, and its error is returned.
func TestDeleteRepeats(t *testing.T) {
	w := newWorld(t)
	kind := persons(w.wire)
	connect := kind.Connect
	kind.Connect = func(ctx context.Context, p *person) (crossplane.External[*person, string, entry], error) {
		e, err := connect(ctx, p)
		e.Lifecycle = nil
		return e, err
	}
	w.memory.slow = true
	run(w, kind, options{})
	p := w.person("jane", nil)
	w.awaitPerson(p, "created", bound)
	id := meta.GetExternalName(p)
	w.wire.set(func(_ context.Context, call string, send func() error) error {
		if call == "Remove" && w.wire.count("Remove") > 1 {
			return io.ErrNoProgress
		}
		return send()
	})
	w.delete(p)
	w.awaitPerson(p, "refused", failing(io.ErrNoProgress.Error()))
	w.store.change(id, func(*entry) bool { return false })
	w.awaitGone(p)
}

// 37: an object with a malformed name keeps its finalizer. Both remedies work.
func TestDeleteMalformedName(t *testing.T) {
	for _, remedy := range []string{"name", "policy"} {
		t.Run(remedy, func(t *testing.T) {
			w := newWorld(t)
			run(w, persons(w.wire), options{})
			p := w.person("jane", nil)
			w.awaitPerson(p, "created", bound)
			id := meta.GetExternalName(p)
			w.annotate(p, meta.AnnotationKeyExternalName, "nonsense")
			w.awaitPerson(p, "refused", failing("NotGUID"))
			w.delete(p)
			w.awaitPerson(p, "refused with a remedy", failing(`-p '{"spec":{"managementPolicies":["Observe"]}}'`))
			if len(p.Finalizers) != 1 || w.wire.count("Remove") != 0 {
				t.Errorf("finalizers %v, calls %v", p.Finalizers, w.wire.calls)
			}
			if remedy == "name" {
				w.annotate(p, meta.AnnotationKeyExternalName, id)
				w.awaitGone(p)
				w.checkEntries(0)
				return
			}
			w.patch(p, `{"spec":{"managementPolicies":["Observe"]}}`)
			w.awaitGone(p)
			w.checkEntries(1)
		})
	}
}

// 38: an object whose creation has no known outcome keeps its finalizer until the outcome is known.
func TestDeleteWhileUnknown(t *testing.T) {
	w := newWorld(t)
	kind := recovering(w.wire)
	w.wire.set(func(_ context.Context, call string, send func() error) error {
		switch call {
		case "Add":
			_ = send()
			return io.EOF
		case "Search":
			return io.ErrClosedPipe // The directory does not say what exists.
		}
		return send()
	})
	run(w, kind, options{})
	p := w.person("jane", nil)
	w.awaitPerson(p, "unknown", failing(io.ErrClosedPipe.Error()))
	w.delete(p)
	time.Sleep(2 * soon)
	if get(w, p); len(p.Finalizers) != 1 {
		t.Errorf("finalizers are %v", p.Finalizers)
	}
	w.checkEntries(1)
	w.wire.set(nil)
	w.awaitGone(p)
	w.checkEntries(0)
}

// 42: a conflict of the external system is reported, and not taken for one of Kubernetes.
func TestExternalConflict(t *testing.T) {
	conflict := kerrors.NewConflict(schema.GroupResource{Resource: "people"}, "jane", io.ErrNoProgress)
	for _, call := range []string{"Add", "Read", "Write", "Remove"} {
		t.Run(call, func(t *testing.T) {
			w := newWorld(t)
			run(w, persons(w.wire), options{})
			p := w.person("jane", nil)
			if call != "Add" {
				w.awaitPerson(p, "created", bound)
			}
			w.wire.set(func(_ context.Context, this string, send func() error) error {
				if this == call {
					return conflict
				}
				return send()
			})
			switch call {
			case "Write":
				w.patch(p, `{"spec":{"forProvider":{"title":"new"}}}`)
			case "Remove":
				w.delete(p)
			case "Add":
				w.person("john", nil)
			}
			w.awaitPerson(p, "reported", func(p *person) bool {
				return p.GetCondition(xpv2.TypeSynced).Reason == xpv2.ReasonReconcileError && failing("Operation cannot be fulfilled")(p)
			})
		})
	}
}

// Two objects have one external name. The deletion of one would delete what the other one has, which would then create another.
func TestDeletionOfASharedNameIsRefused(t *testing.T) {
	w := newWorld(t)
	made := w.add(entry{Name: "jane"})
	provider := run(w, persons(w.wire), options{})
	jane := func(p *person) { named(made.ID)(p); p.Spec.ForProvider.Name = "jane" }
	one, two := w.person("one", jane), w.person("two", jane)
	w.awaitPerson(one, "bound", bound)
	w.awaitPerson(two, "bound", bound)
	refused := func(p *person) bool {
		c := p.GetCondition(crossplane.TypeUniqueName)
		return failing("is not deleted, since other objects have its name: "+w.namespace+"/two")(p) && c.Status == corev1.ConditionFalse && string(c.Reason) == externalname.ReasonDeletionRefused.Name
	}
	w.delete(one)
	w.awaitPerson(one, "refused", refused)
	w.passes(3)
	if events := w.events.with("DeletionRefused"); len(events) != 1 || !strings.Contains(events[0], made.ID) {
		t.Errorf("events are %v, want one that names the external resource", events)
	}
	if message := one.GetCondition(xpv2.TypeSynced).Message; !strings.Contains(message, "kubectl patch person.") || !strings.Contains(message, "one -n "+w.namespace) {
		t.Errorf("the message has no command for the object: %s", message)
	}

	// A provider that has just started knows no other object yet.
	provider.stop()
	run(w, persons(w.wire), options{})
	w.passes(3)
	w.awaitPerson(one, "refused again", refused)
	w.checkEntries(1)
	if n := w.wire.count("Remove"); n != 0 {
		t.Fatalf("%d deletions", n)
	}

	// The remedy leaves the external resource to the other object.
	w.patch(one, `{"spec":{"managementPolicies":["Observe"]}}`)
	w.awaitGone(one)
	w.checkEntries(1)

	// The last one deletes it.
	w.delete(two)
	w.awaitGone(two)
	w.checkEntries(0)
}

// TestPartsOfAnAggregateShareTheirName: each object is a part of one external resource, and is deleted alone.
func TestPartsOfAnAggregateShareTheirName(t *testing.T) {
	w := newWorld(t)
	made := w.add(entry{Name: "jane"})
	kind, left := persons(w.wire), sync.Map{} // left has the objects whose part is removed
	kind.Exceptions = []crossplane.Exception{{Rule: crossplane.RuleUniqueNames, Reason: "Each object is a part of the person."}}
	whole := kind.Connect
	kind.Connect = func(ctx context.Context, p *person) (crossplane.External[*person, string, entry], error) {
		e, err := whole(ctx, p)
		e.Delete = func(context.Context, string) error { left.Store(p.Name, true); return nil }
		read := e.Get
		e.Get = func(ctx context.Context, id string) (entry, error) {
			if _, removed := left.Load(p.Name); removed {
				return entry{}, crossplane.ErrNotFound
			}
			return read(ctx, id)
		}
		return e, err
	}
	run(w, kind, options{})
	jane := func(p *person) { named(made.ID)(p); p.Spec.ForProvider.Name = "jane" }
	one, two := w.person("one", jane), w.person("two", jane)
	w.awaitPerson(one, "bound", bound)
	w.awaitPerson(two, "bound", bound)
	w.passes(3)
	for _, p := range []*person{one, two} {
		if c := get(w, p).GetCondition(crossplane.TypeUniqueName); c.Status != corev1.ConditionUnknown {
			t.Errorf("%s has the condition %+v", p.Name, c)
		}
	}
	w.delete(one)
	w.awaitGone(one)
	w.checkEntries(1)
}

// An object that only observes, or that is being deleted as well, refuses no deletion.
func TestDeletionBesideAnObserver(t *testing.T) {
	w := newWorld(t)
	made := w.add(entry{Name: "jane"})
	run(w, persons(w.wire), options{})
	jane := func(policies ...xpv2.ManagementAction) func(*person) {
		return func(p *person) { named(made.ID, policies...)(p); p.Spec.ForProvider.Name = "jane" }
	}
	one, two, observer := w.person("one", jane()), w.person("two", jane()), w.person("observer", jane(xpv2.ManagementActionObserve))
	for _, p := range []*person{one, two, observer} {
		w.awaitPerson(p, "bound", bound)
	}
	w.delete(one)
	w.awaitPerson(one, "refused", failing("is not deleted"))
	w.delete(two)
	w.awaitGone(one)
	w.awaitGone(two)
	w.checkEntries(0)
}
