package externalname_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// 1, 2: without a name nothing is adopted; Create sets the name that the directory has made.
func TestCreateSetsTheName(t *testing.T) {
	w := newWorld(t)
	run(w, persons(w.wire), options{})
	p := w.person("jane", nil)
	w.awaitPerson(p, "created", func(p *person) bool { return bound(p) && ready(p) })
	entries := w.store.all()
	if len(entries) != 1 || meta.GetExternalName(p) != entries[0].ID {
		t.Fatalf("external name is %q, the directory has %+v", meta.GetExternalName(p), entries)
	}
	w.checkClean(p)
	if p.Status.AtProvider.Name != "jane" {
		t.Errorf("status.atProvider is %+v", p.Status.AtProvider)
	}
	// 2: the object's name was never an external name, or it would have been asked for.
	for _, e := range w.events.with("ExternalNameNeverFound") {
		t.Error(e)
	}
	if n := w.wire.count("Add"); n != 1 {
		t.Errorf("%d creations", n)
	}
}

// 3, 4, 5: an entry that exists is not adopted. The error loop backs off, and ends when the user
// does what the message says.
func TestAlreadyExists(t *testing.T) {
	w := newWorld(t)
	made, err := w.store.Add(t.Context(), entry{Name: "jane", Title: "boss"})
	if err != nil {
		t.Fatal(err)
	}
	run(w, persons(w.wire), options{})
	p := w.person("jane", nil)
	w.awaitPerson(p, "refused", failing("already exists"))
	if name := meta.GetExternalName(p); name != "" {
		t.Errorf("external name is %q after a creation that failed", name)
	}
	message := p.GetCondition(xpv2.TypeSynced).Message
	remedy := fmt.Sprintf("kubectl annotate --overwrite person.names.example.org jane -n %s 'crossplane.io/external-name=<guid>'", w.namespace)
	if !strings.Contains(message, remedy) {
		t.Errorf("message %q lacks %q", message, remedy)
	}

	// The limiter of these tests allows about nine attempts in two seconds. A change of an
	// annotation with each attempt would make hundreds.
	before := w.wire.count("Add")
	time.Sleep(2 * time.Second)
	if n := w.wire.count("Add") - before; n < 1 || n > 15 {
		t.Errorf("%d attempts in two seconds", n)
	}

	w.annotate(p, meta.AnnotationKeyExternalName, made.ID) // the remedy
	w.awaitPerson(p, "adopted", func(p *person) bool { return bound(p) && p.Status.AtProvider.Title == "" })
	w.checkEntries(1)
	w.checkClean(p)
}

// What was refused is not ours to delete.
func TestDeleteAfterAlreadyExists(t *testing.T) {
	w := newWorld(t)
	w.add(entry{Name: "jane", Title: "boss"})
	run(w, persons(w.wire), options{})
	p := w.person("jane", nil)
	w.awaitPerson(p, "refused", failing("already exists"))
	w.delete(p)
	w.awaitGone(p)
	w.checkEntries(1)
	if n := w.wire.count("Remove", "Write"); n != 0 {
		t.Errorf("%d calls: %v", n, w.wire.calls)
	}
}

// A failed creation leaves the name as it was, and says why.
func TestCreateFails(t *testing.T) {
	w := newWorld(t)
	w.wire.set(func(_ context.Context, call string, send func() error) error {
		if call == "Add" {
			return errors.New("quota exceeded")
		}
		return send()
	})
	run(w, persons(w.wire), options{})
	p := w.person("jane", nil)
	w.awaitPerson(p, "refused", failing("quota exceeded"))
	if name := meta.GetExternalName(p); name != "" {
		t.Errorf("external name is %q after a creation that failed", name)
	}
	w.wire.set(nil)
	w.awaitPerson(p, "created", bound)
	w.checkEntries(1)
}

// 22: what another client writes during a creation stays, the external name included.
func TestConcurrentEdit(t *testing.T) {
	const other = "11111111-1111-4111-8111-111111111111"
	w := newWorld(t)
	p := &person{}
	w.wire.set(func(_ context.Context, call string, send func() error) error {
		err := send()
		if call == "Add" {
			w.annotate(p, "example.org/owner", "team-a")
			w.annotate(p, meta.AnnotationKeyExternalName, other)
		}
		return err
	})
	p.Name, p.Namespace, p.Spec.ForProvider.Name = "jane", w.namespace, "jane"
	w.create(p)
	run(w, persons(w.wire), options{})
	live := &person{}
	live.Name, live.Namespace = "jane", w.namespace
	w.awaitPerson(live, "reported", failing("still exists"))
	if live.Annotations["example.org/owner"] != "team-a" || meta.GetExternalName(live) != other {
		t.Errorf("annotations of the user are lost: %v", live.Annotations)
	}
	// What was created is not lost: the message names it.
	if id := w.store.all()[0].ID; !strings.Contains(live.GetCondition(xpv2.TypeSynced).Message, id) {
		t.Errorf("message %q does not name %s", live.GetCondition(xpv2.TypeSynced).Message, id)
	}
	w.checkEntries(1)
}

// What an author's function changes of the object is dropped, but for the status in Mirror.
func TestFunctionsWorkOnCopies(t *testing.T) {
	w := newWorld(t)
	kind := persons(w.wire)
	connect := kind.Connect
	kind.Connect = func(ctx context.Context, p *person) (crossplane.External[*person, string, entry], error) {
		e, err := connect(ctx, p)
		mirror := e.Mirror
		e.Mirror = func(p *person, observed entry) {
			mirror(p, observed)
			p.Spec.ForProvider.Title = "late-initialized"
			p.Annotations = nil
		}
		return e, err
	}
	run(w, kind, options{})
	p := w.person("jane", nil)
	w.awaitPerson(p, "created", func(p *person) bool { return bound(p) && p.Status.AtProvider.Name == "jane" })
	w.passes(3)
	if get(w, p); p.Spec.ForProvider.Title != "" || p.Generation != 1 || !bound(p) {
		t.Errorf("spec %+v of generation %d, annotations %v", p.Spec.ForProvider, p.Generation, p.Annotations)
	}
}
