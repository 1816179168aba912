package externalname_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/test/externalname/kinds"
)

const unknownID = "99999999-9999-4999-8999-999999999999"

func (w *world) add(e entry) entry {
	w.t.Helper()
	made, err := w.store.Add(w.t.Context(), e)
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// 6, 7: a malformed name is an error before any call, and its remedy works.
func TestMalformedName(t *testing.T) {
	for reason, name := range map[string]string{
		"no GUID":        "my-person",
		"URN":            "urn:uuid:" + unknownID,
		"braces":         "{" + unknownID + "}",
		"32 digits":      strings.ReplaceAll(unknownID, "-", ""),
		"path":           "../../admin",
		"half a segment": unknownID + "/",
		"200 KiB":        strings.Repeat("a", 200<<10),
		"escape":         "\x1b[2J" + unknownID,
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			made := w.add(entry{Name: "jane"})
			run(w, persons(w.wire), options{})
			p := w.person("jane", named(name))
			w.awaitPerson(p, "refused", failing("external name"))
			if n := w.wire.count(); n != 0 {
				t.Errorf("%d calls for a malformed name: %v", n, w.wire.calls)
			}
			if message := p.GetCondition(xpv2.TypeSynced).Message; len(message) > 1000 || strings.ContainsRune(message, '\x1b') {
				t.Errorf("message is %q", message)
			}
			w.annotate(p, meta.AnnotationKeyExternalName, made.ID)
			w.awaitPerson(p, "found", bound)
		})
	}
}

// 8: a name that does not exist is drift: the resource is created again. The first import with a
// typo under full management is the same, with a warning.
func TestNotFoundIsDrift(t *testing.T) {
	w := newWorld(t)
	run(w, persons(w.wire), options{})
	p := w.person("jane", named(unknownID))
	w.awaitPerson(p, "created", func(p *person) bool { return bound(p) && meta.GetExternalName(p) != unknownID })
	if warnings := w.events.with("ExternalNameNeverFound"); len(warnings) != 1 || !strings.Contains(warnings[0], unknownID) {
		t.Errorf("warnings are %q, want one that names %s", warnings, unknownID)
	}
	first := meta.GetExternalName(p)
	w.store.change(first, func(*entry) bool { return false })
	w.awaitPerson(p, "created again", func(p *person) bool { return bound(p) && meta.GetExternalName(p) != first })
	if warnings := w.events.with("ExternalNameNeverFound"); len(warnings) != 1 {
		t.Errorf("drift of a resource that existed is no typo: %q", warnings)
	}
	w.checkEntries(1)
}

// A kind may refuse to create in place of an import, and the remedy works.
func TestImportMustExist(t *testing.T) {
	w := newWorld(t)
	kind := persons(w.wire)
	kind.ImportMustExist = true
	run(w, kind, options{})
	p := w.person("jane", named(unknownID))
	w.awaitPerson(p, "refused", failing("was not found, now or before"))
	w.passes(3)
	w.checkEntries(0)
	w.annotate(p, meta.AnnotationKeyExternalName, "")
	w.awaitPerson(p, "created", bound)
	w.store.change(meta.GetExternalName(p), func(*entry) bool { return false })
	w.awaitPerson(p, "created again", func(p *person) bool { return bound(p) && len(w.store.all()) == 1 })
}

// 9, 10, 11, 12, 13: an import that is only observed is matched by its name, whatever the spec
// says. The differences are in a condition and in one event, secrets are not.
func TestObserveOnly(t *testing.T) {
	w := newWorld(t)
	made := w.add(entry{Name: "jane", Title: "engineer", Secret: "s3cret-old"})
	w.add(entry{Name: "john", Title: "manager"})
	run(w, persons(w.wire), options{})
	p := w.person("import", func(p *person) {
		named(made.ID, xpv2.ManagementActionObserve)(p)
		p.Spec.ForProvider = personParameters{Name: "john", Title: "manager", Secret: "s3cret-new"}
	})
	w.awaitPerson(p, "compared", func(p *person) bool { return p.GetCondition(crossplane.TypeDrift).Status == corev1.ConditionTrue })
	w.passes(5)
	get(w, p)
	message := p.GetCondition(crossplane.TypeDrift).Message
	for _, text := range []string{`name: observed "jane", desired "john"`, `title: observed "engineer", desired "manager"`, "secret: differs (secret)"} {
		if !strings.Contains(message, text) {
			t.Errorf("message %q lacks %q", message, text)
		}
	}
	events := w.events.with("ExternalResourceDiffers")
	if len(events) != 1 || !strings.Contains(events[0], message) {
		t.Errorf("events are %q, want one for five polls", events)
	}
	if strings.Contains(message+strings.Join(events, ""), "s3cret") {
		t.Errorf("a secret is printed: %q %q", message, events)
	}
	if !synced(p) || !ready(p) || p.Status.AtProvider.Title != "engineer" {
		t.Errorf("conditions %+v, status.atProvider %+v", p.Status.Conditions, p.Status.AtProvider)
	}
	w.store.change(made.ID, func(e *entry) bool { e.Title = "director"; return true })
	w.await("second event", func() string {
		if n := len(w.events.with("ExternalResourceDiffers")); n != 2 {
			return fmt.Sprint(n)
		}
		return ""
	})
	w.patch(p, `{"spec":{"forProvider":{"name":"jane","title":"director","secret":"s3cret-old"}}}`)
	w.awaitPerson(p, "no drift", func(p *person) bool { return p.GetCondition(crossplane.TypeDrift).Status == corev1.ConditionFalse })
	if n := w.wire.count("Add", "Write", "Remove", "Search"); n != 0 {
		t.Errorf("%d calls that are not Read: %v", n, w.wire.calls)
	}
}

// Drift under full management ends by an update.
func TestDriftIsUpdated(t *testing.T) {
	w := newWorld(t)
	run(w, persons(w.wire), options{})
	p := w.person("jane", nil)
	w.awaitPerson(p, "created", bound)
	w.store.change(meta.GetExternalName(p), func(e *entry) bool { e.Title = "changed"; return true })
	w.await("update", func() string {
		if all := w.store.all(); all[0].Title != "" {
			return all[0].Title
		}
		return ""
	})
	w.awaitPerson(p, "no drift", func(p *person) bool { return p.GetCondition(crossplane.TypeDrift).Status == corev1.ConditionFalse })
	if events := w.events.with("ExternalResourceDiffers"); len(events) != 1 {
		t.Errorf("events are %q", events)
	}
}

// 14, 15: a resource that does not exist is an error under policies that can't create it.
func TestPoliciesWithoutCreate(t *testing.T) {
	for _, policies := range [][]xpv2.ManagementAction{
		{xpv2.ManagementActionObserve},
		{xpv2.ManagementActionObserve, xpv2.ManagementActionLateInitialize},
		{xpv2.ManagementActionObserve, xpv2.ManagementActionUpdate},
		{xpv2.ManagementActionObserve, xpv2.ManagementActionDelete},
		{xpv2.ManagementActionObserve, xpv2.ManagementActionUpdate, xpv2.ManagementActionLateInitialize},
	} {
		t.Run(fmt.Sprint(policies), func(t *testing.T) {
			w := newWorld(t)
			run(w, persons(w.wire), options{})
			p := w.person("jane", named(unknownID, policies...))
			w.awaitPerson(p, "refused", failing("does not exist"))
			w.passes(3)
			if n := w.wire.count("Add", "Write", "Remove"); n != 0 {
				t.Errorf("%d writes: %v", n, w.wire.calls)
			}
			w.delete(p)
			w.awaitGone(p)
		})
	}
}

// 16, 17, 18, 19, 21: the name that crossplane-runtime writes by default is replaced by the GUID,
// whatever the policies are. Spec and generation stay, and the status is there at once.
func TestLegacyObjectName(t *testing.T) {
	for _, policies := range [][]xpv2.ManagementAction{
		nil,
		{xpv2.ManagementActionObserve},
		{xpv2.ManagementActionObserve, xpv2.ManagementActionCreate, xpv2.ManagementActionUpdate, xpv2.ManagementActionDelete},
	} {
		t.Run(fmt.Sprint(policies), func(t *testing.T) {
			w := newWorld(t)
			made := w.add(entry{Name: "jane", Title: "engineer"})
			run(w, persons(w.wire), options{})
			p := w.person("jane", func(p *person) {
				named("jane", policies...)(p)
				p.Spec.ForProvider.Title = "engineer"
			})
			w.awaitPerson(p, "renamed", func(p *person) bool { return bound(p) && meta.GetExternalName(p) == made.ID })
			if p.Generation != 1 || p.Status.AtProvider.Title != "engineer" || !ready(p) {
				t.Errorf("generation %d, status.atProvider %+v, conditions %+v", p.Generation, p.Status.AtProvider, p.Status.Conditions)
			}
			if n := w.wire.count("Add", "Write"); n != 0 {
				t.Errorf("%d writes: %v", n, w.wire.calls)
			}
		})
	}
}

// prefixed is a former codec, which wrote the GUID behind a prefix.
type prefixed struct{ externalname.Codec[string] }

func (p prefixed) ParseLenient(name string) (string, error) {
	return p.Codec.ParseLenient(strings.TrimPrefix(name, "person:"))
}

// 16: a legacy name that contains the key is replaced without a lookup by the spec.
func TestLegacyKey(t *testing.T) {
	w := newWorld(t)
	made := w.add(entry{Name: "jane"})
	kind := persons(w.wire)
	kind.Names.Legacy = []externalname.Form[string]{externalname.LegacyKey[string]("Prefixed", prefixed{externalname.GUID()})}
	run(w, kind, options{})
	p := w.person("jane", named("person:"+made.ID))
	w.awaitPerson(p, "renamed", func(p *person) bool { return bound(p) && meta.GetExternalName(p) == made.ID })
	if n := w.wire.count("Add", "Write", "Search"); n != 0 {
		t.Errorf("%d calls: %v", n, w.wire.calls)
	}
}

// An object without a name is looked up only if the kind says so.
func TestFindUnnamed(t *testing.T) {
	w := newWorld(t)
	made := w.add(entry{Name: "jane"})
	kind := persons(w.wire)
	kind.FindUnnamed = true
	run(w, kind, options{})
	p := w.person("jane", nil)
	w.awaitPerson(p, "found", func(p *person) bool { return bound(p) && meta.GetExternalName(p) == made.ID })
	created := w.person("john", nil)
	w.awaitPerson(created, "created", bound)
	w.checkEntries(2)
}

// 20: several matches are an error that names them, and nothing is written.
func TestMultipleMatches(t *testing.T) {
	w := newWorld(t)
	one, two := w.add(entry{Name: "jane", Mail: "j@example.org"}), w.add(entry{Name: "john", Mail: "j@example.org"})
	run(w, persons(w.wire), options{})
	p := w.person("import", func(p *person) {
		named("import")(p)
		p.Spec.ForProvider.Mail = "j@example.org"
	})
	w.awaitPerson(p, "refused", func(p *person) bool { return failing(one.ID)(p) && failing(two.ID)(p) })
	if n := w.wire.count("Add", "Write", "Remove"); n != 0 {
		t.Errorf("%d writes: %v", n, w.wire.calls)
	}
}

// Get may say that a key matches several entries: it is an error, and nothing is written.
func TestMultipleMatchesOfAKey(t *testing.T) {
	w := newWorld(t)
	made := w.add(entry{Name: "jane"})
	w.wire.set(func(_ context.Context, call string, send func() error) error {
		if call == "Read" {
			return &crossplane.MultipleMatchesError{Names: []string{made.ID, unknownID}}
		}
		return send()
	})
	run(w, persons(w.wire), options{})
	p := w.person("jane", named(made.ID))
	w.awaitPerson(p, "refused", func(p *person) bool { return failing(made.ID)(p) && failing(unknownID)(p) })
	if n := w.wire.count("Add", "Write", "Remove"); n != 0 {
		t.Errorf("%d writes: %v", n, w.wire.calls)
	}
}

// logged keeps the messages of a logger.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) logger() logging.Logger {
	return logging.NewLogrLogger(funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, args)
	}, funcr.Options{Verbosity: 1}))
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func (l *logged) has(texts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.lines, func(line string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) })
	})
}

// A diff is also in the debug log, and an author's initializers run after the default ones, none of which writes a name.
func TestDebugLogAndInitializers(t *testing.T) {
	w := newWorld(t)
	made := w.add(entry{Name: "jane", Title: "engineer"})
	kind := persons(w.wire)
	initialized := make(chan string, 100)
	kind.Initializers = []managed.Initializer{managed.InitializerFn(func(_ context.Context, mg resource.Managed) error {
		select {
		case initialized <- meta.GetExternalName(mg):
		default:
		}
		return nil
	})}
	log := &logged{}
	run(w, kind, options{further: []managed.ReconcilerOption{managed.WithLogger(log.logger())}})
	w.person("import", func(p *person) {
		named(made.ID, xpv2.ManagementActionObserve)(p)
		p.Spec.ForProvider = personParameters{Name: "jane", Title: "manager"}
	})
	w.await("a line of the log", func() string {
		if !log.has("External resource differs from desired state", "engineer", "manager") {
			return log.text()
		}
		return ""
	})
	if name := <-initialized; name != made.ID {
		t.Errorf("the author's initializer saw the name %q", name)
	}
	unnamed := w.person("john", nil)
	w.awaitPerson(unnamed, "created", bound)
	for len(initialized) > 0 {
		if name := <-initialized; name == "john" {
			t.Error("an initializer has written the name of the object as the external name")
		}
	}
}

// A name in another writing identifies the resource, and stays as the user wrote it.
func TestLenientName(t *testing.T) {
	w := newWorld(t)
	made := w.add(entry{Name: "jane", Mail: "a"})
	run(w, persons(w.wire), options{})
	written := strings.ToUpper(made.ID) + " "
	p := w.person("jane", func(p *person) { named(written)(p); p.Spec.ForProvider.Mail = "a" })
	w.awaitPerson(p, "found", func(p *person) bool { return synced(p) && p.Annotations[crossplane.AnnotationBoundName] == made.ID })
	w.passes(3)
	if got := meta.GetExternalName(get(w, p)); got != written {
		t.Errorf("the user's %q became %q", written, got)
	}
}

// 39: a name that is edited or removed while the resource exists creates nothing. Both remedies
// work. A restore without status is no different, since the bound name is an annotation.
func TestEditedName(t *testing.T) {
	for reason, edited := range map[string]string{"edited": unknownID, "removed": ""} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			run(w, persons(w.wire), options{})
			p := w.person("jane", nil)
			w.awaitPerson(p, "created", bound)
			id := meta.GetExternalName(p)
			w.annotate(p, meta.AnnotationKeyExternalName, edited)
			w.awaitPerson(p, "refused", failing("still exists"))
			w.passes(4)
			w.checkEntries(1)
			w.annotate(p, meta.AnnotationKeyExternalName, id)
			w.awaitPerson(p, "restored", bound)

			// The other remedy gives the resource up; a person of the same name can't exist twice.
			w.annotate(p, meta.AnnotationKeyExternalName, edited)
			w.awaitPerson(p, "refused", failing("still exists"))
			w.store.change(id, func(e *entry) bool { e.Name = "given-up"; return true })
			w.annotate(p, crossplane.AnnotationBoundName, "")
			w.awaitPerson(p, "created", func(p *person) bool { return bound(p) && meta.GetExternalName(p) != id })
			w.checkEntries(2)
		})
	}
}

// A name that is changed to that of another resource is what the user asks for, and is recorded.
func TestRebound(t *testing.T) {
	w := newWorld(t)
	other := w.add(entry{Name: "john"})
	run(w, persons(w.wire), options{})
	p := w.person("jane", named("", xpv2.ManagementActionObserve, xpv2.ManagementActionCreate))
	w.awaitPerson(p, "created", bound)
	before := meta.GetExternalName(p)
	w.annotate(p, meta.AnnotationKeyExternalName, other.ID)
	w.awaitPerson(p, "rebound", func(p *person) bool { return p.Annotations[crossplane.AnnotationBoundName] == other.ID })
	w.await("event", func() string { // It follows the patch.
		if events := w.events.with("ExternalNameBound"); len(events) != 1 || !strings.Contains(events[0], before) {
			return fmt.Sprintf("events are %q, want one that names %s", events, before)
		}
		return ""
	})
}

// A restore without status into another cluster finds the resource.
func TestRestoreWithoutStatus(t *testing.T) {
	w := newWorld(t)
	p := run(w, persons(w.wire), options{})
	jane := w.person("jane", nil)
	w.awaitPerson(jane, "created", bound)
	p.stop()
	backup := &person{Spec: jane.Spec}
	backup.Name, backup.Namespace, backup.Annotations = "jane", w.namespace, jane.Annotations
	w.patch(jane, `{"metadata":{"finalizers":null}}`)
	w.delete(jane)
	w.awaitGone(jane)
	w.create(backup)
	run(w, persons(w.wire), options{})
	w.awaitPerson(backup, "found", func(p *person) bool { return bound(p) && p.Status.AtProvider.Name == "jane" })
	w.checkEntries(1)

	// The edit that follows is still an edit.
	w.annotate(backup, meta.AnnotationKeyExternalName, unknownID)
	w.awaitPerson(backup, "refused", failing("still exists"))
	w.checkEntries(1)
}

// 40: two objects with one name are reported on both.
func TestSharedName(t *testing.T) {
	w := newWorld(t)
	made := w.add(entry{Name: "jane"})
	run(w, persons(w.wire), options{})
	shared := func(p *person) bool { return p.GetCondition(crossplane.TypeUniqueName).Status == corev1.ConditionFalse }
	one := w.person("one", func(p *person) { named(made.ID, xpv2.ManagementActionObserve)(p); p.Spec.ForProvider.Name = "jane" })
	two := w.person("two", func(p *person) { named(made.ID, xpv2.ManagementActionObserve)(p); p.Spec.ForProvider.Name = "jane" })
	w.awaitPerson(one, "reported", shared)
	w.awaitPerson(two, "reported", shared)
	if message := one.GetCondition(crossplane.TypeUniqueName).Message; !strings.Contains(message, w.namespace+"/two") {
		t.Errorf("message %q does not name the other", message)
	}
	w.delete(two)
	w.awaitPerson(one, "unique again", func(p *person) bool { return p.GetCondition(crossplane.TypeUniqueName).Status == corev1.ConditionTrue })
	if n := len(w.events.with("ExternalNameShared")); n != 2 {
		t.Errorf("%d events, want one for each object", n)
	}
}

// A hybrid kind has its key from observed fields, as a declared exception.
func TestHybridKind(t *testing.T) {
	w := newWorld(t)
	made := w.add(entry{Name: "jane", Mail: "jane@example.org"})
	type hybrid = crossplane.Resource[*person, hybridKey, entry]
	base := persons(w.wire)
	kind := hybrid{
		Kind:    base.Kind,
		Names:   kinds.HybridNames,
		Connect: hybridConnect(w.wire),
		KeyFromStatus: func(p *person) (hybridKey, bool) {
			return hybridKey{ID: p.Status.AtProvider.Secret, Mail: p.Status.AtProvider.Mail}, p.Status.AtProvider.Secret != ""
		},
	}
	if _, err := kind.Options(nil, w.events); err == nil || !strings.Contains(err.Error(), "NameFromCreate") {
		t.Errorf("a hybrid kind without an exception: %v", err)
	}
	kind.Exceptions = kinds.HybridExceptions
	run(w, kind, options{})
	p := w.person("jane", named(made.ID+"/", xpv2.ManagementActionObserve))
	w.awaitPerson(p, "named", func(p *person) bool { return bound(p) && meta.GetExternalName(p) == made.ID+"/jane@example.org" })
	w.store.change(made.ID, func(e *entry) bool { e.Mail = "doe@example.org"; return true })
	w.awaitPerson(p, "renamed", func(p *person) bool { return bound(p) && meta.GetExternalName(p) == made.ID+"/doe@example.org" })
	if !slices.Contains(p.Finalizers, "finalizer.managedresource.crossplane.io") {
		t.Errorf("finalizers are %v", p.Finalizers)
	}
}
