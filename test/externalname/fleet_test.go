package externalname_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/test/fault"
	"github.com/godwit-dev/godwit/walk"
)

// personKind is what a fleet of persons is made of.
var personKind = fleet.Kind{Resource: groupVersion.WithResource("persons"), Kind: "Person"}

// fleetOf returns the persons of the world, as a command whose requests pass a transport sees them. The directory has one person of
// a name, so that the name identifies it although the spec has it, too.
func (w *world) fleetOf(wire *fault.Transport, o fleet.Options) *fleet.Fleet {
	w.t.Helper()
	o.Scope.Namespace = w.namespace
	if len(o.Identity.Fields) == 0 {
		o.Identity.Fields = []string{"name"}
	}
	f, err := fleet.New(wire.Config(shared.Config()), personKind, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

var scheme = persons(nil).Names

// legacyPersons creates persons whose names have a space at the end, which the provider reads and the
// codec does not write. Each has an entry.
func (w *world) legacyPersons(n int) []*person {
	w.t.Helper()
	all := make([]*person, n)
	for i := range all {
		name := fmt.Sprintf("legacy-%d", i)
		all[i] = w.person(name, named(w.add(entry{Name: name}).ID+" "))
	}
	for _, p := range all {
		w.awaitPerson(p, "observed", func(p *person) bool { return synced(p) && p.Status.AtProvider.Name == p.Name })
	}
	return all
}

func (w *world) plan(f *fleet.Fleet, naming fleet.Naming) []fleet.Item {
	w.t.Helper()
	items, err := f.Plan(w.t.Context(), naming)
	if err != nil {
		w.t.Fatal(err)
	}
	return items
}

func (w *world) apply(f *fleet.Fleet, items []fleet.Item) fleet.Report {
	w.t.Helper()
	r, err := f.Apply(w.t.Context(), items)
	if err != nil {
		w.t.Fatalf("%v: %+v", err, r)
	}
	return r
}

// checkCanonical says that each person has the canonical name, no pause, and its own entry.
func (w *world) checkCanonical(all []*person) {
	w.t.Helper()
	for _, p := range all {
		get(w, p)
		name := meta.GetExternalName(p)
		if name != strings.TrimSpace(name) || name == "" {
			w.t.Errorf("%s: external name is %q", p.Name, name)
		}
		if meta.IsPaused(p) {
			w.t.Errorf("%s is paused", p.Name)
		}
		w.awaitPerson(p, "observed", func(p *person) bool { return synced(p) && p.Status.AtProvider.Name == p.Name })
	}
	if n := w.wire.count("Add", "Write"); n != 0 {
		w.t.Errorf("%d writes to the directory", n)
	}
}

// item finds an item by the name of the managed resource.
func itemOf(t *testing.T, items []fleet.Item, name string) fleet.Item {
	t.Helper()
	at := slices.IndexFunc(items, func(i fleet.Item) bool { return i.Name == name })
	if at < 0 {
		t.Fatalf("no item %s in %+v", name, items)
	}
	return items[at]
}

// 46: a plan writes nothing, and has the class and the reason of each managed resource. 48: a name that a
// GitOps tool or a Composition owns is skipped, with a patch for its source.
func TestFleetPlan(t *testing.T) {
	w := newWorld(t)
	run(w, persons(w.wire), options{})
	legacy := w.legacyPersons(1)[0]
	canonical := w.person("canonical", named(w.add(entry{Name: "canonical"}).ID))
	w.awaitPerson(canonical, "bound", bound)
	w.person("invalid", named("urn:uuid:00000000-0000-4000-8000-000000000001"))
	twice := w.add(entry{Name: "twice"}).ID
	w.person("twice-a", named(twice))
	w.person("twice-b", named(twice+" "))
	hint := w.person("hint", func(p *person) {
		meta.SetExternalName(p, "hint")
		meta.AddAnnotations(p, map[string]string{meta.AnnotationKeyReconciliationPaused: "true"})
	})
	pausedPerson := w.person("paused", func(p *person) {
		meta.SetExternalName(p, fmt.Sprintf("99999999-9999-4999-8999-%012d ", worlds.Add(1))) // as no other test
		meta.AddAnnotations(p, map[string]string{meta.AnnotationKeyReconciliationPaused: "true"})
	})
	w.person("empty", func(p *person) {
		meta.AddAnnotations(p, map[string]string{meta.AnnotationKeyReconciliationPaused: "true"})
	})
	w.person("upjet", func(p *person) {
		meta.SetExternalName(p, "up")
		meta.AddAnnotations(p, map[string]string{"upjet.crossplane.io/provider-meta": "{}", meta.AnnotationKeyReconciliationPaused: "true"})
	})
	w.person("creating", func(p *person) {
		meta.SetExternalCreatePending(p, time.Now())
		meta.AddAnnotations(p, map[string]string{meta.AnnotationKeyReconciliationPaused: "true"})
	})
	git := w.applied("git", "argocd-controller", nil)
	composed := w.applied("composed", "apiextensions.crossplane.io/composed", map[string]string{"crossplane.io/composite": "team"})
	kubectl := w.applied("kubectl", "kubectl", nil)

	wire := &fault.Transport{}
	items := w.plan(w.fleetOf(wire, fleet.Options{}), fleet.FromScheme(scheme, nil))
	if writes := wire.Writes(); len(writes) != 0 {
		t.Errorf("a plan has written: %v", writes)
	}
	for name, want := range map[string]struct {
		class  fleet.Class
		form   string
		action fleet.Action
		reason *godwit.Reason
	}{
		legacy.Name:       {fleet.Legacy, "Lenient", fleet.Rename, nil},
		canonical.Name:    {fleet.Canonical, "", fleet.None, nil},
		"invalid":         {fleet.Invalid, "", fleet.Skip, externalname.ReasonNotGUID},
		"twice-a":         {fleet.Duplicate, "", fleet.Skip, fleet.ReasonDuplicate},
		"twice-b":         {fleet.Duplicate, "", fleet.Skip, fleet.ReasonDuplicate},
		hint.Name:         {fleet.Legacy, "ObjectName", fleet.Skip, fleet.ReasonNoProposal},
		pausedPerson.Name: {fleet.Legacy, "Lenient", fleet.Skip, fleet.ReasonPaused},
		"empty":           {fleet.Empty, "", fleet.None, fleet.ReasonNoName},
		"upjet":           {fleet.NotOurs, "", fleet.None, fleet.ReasonUpjet},
		"creating":        {fleet.CreateIncomplete, "", fleet.Skip, fleet.ReasonCreateIncomplete},
		git:               {fleet.Legacy, "Lenient", fleet.Skip, fleet.ReasonSourceOwned},
		composed:          {fleet.Legacy, "Lenient", fleet.Skip, fleet.ReasonSourceOwned},
		kubectl:           {fleet.Legacy, "Lenient", fleet.Rename, nil},
	} {
		i := itemOf(t, items, name)
		if i.Class != want.class || i.Form != want.form || i.Action != want.action || i.Reason != want.reason {
			t.Errorf("%s is %s{%s}, %s, %q: %s; want %+v", name, i.Class, i.Form, i.Action, i.Reason, i.Message, want)
		}
	}
	for name, owner := range map[string]fleet.Owner{
		git:      {Manager: "argocd-controller", Source: true},
		composed: {Manager: "apiextensions.crossplane.io/composed", Source: true, Composite: "team"},
		kubectl:  {Manager: "kubectl"},
	} {
		if i := itemOf(t, items, name); i.Owner != owner {
			t.Errorf("owner of %s is %+v, want %+v", name, i.Owner, owner)
		}
	}
	w.checkSourcePatch(itemOf(t, items, git))
}

// applied creates a person by server-side apply, with a legacy name.
func (w *world) applied(name, manager string, labels map[string]string) string {
	w.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"forProvider": map[string]any{"name": name}}}}
	o.SetGroupVersionKind(groupVersion.WithKind("Person"))
	o.SetNamespace(w.namespace)
	o.SetName(name)
	o.SetLabels(labels)
	o.SetAnnotations(map[string]string{meta.AnnotationKeyExternalName: w.add(entry{Name: name}).ID + " "})
	w.applyAs(o, manager)
	p := &person{}
	p.Name, p.Namespace = name, w.namespace
	w.awaitPerson(p, "observed", func(p *person) bool { return synced(p) && p.Status.AtProvider.Name == name })
	return name
}

func (w *world) applyAs(o *unstructured.Unstructured, manager string) {
	w.t.Helper()
	err := w.client.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(manager), client.ForceOwnership)
	if err != nil {
		w.t.Fatal(err)
	}
}

// checkSourcePatch does what the patch says: it is put over the manifest, and the tool applies it.
func (w *world) checkSourcePatch(i fleet.Item) {
	w.t.Helper()
	patch := &unstructured.Unstructured{}
	if err := patch.UnmarshalJSON([]byte(i.SourcePatch)); err != nil {
		w.t.Fatalf("source patch %q: %v", i.SourcePatch, err)
	}
	if err := unstructured.SetNestedField(patch.Object, i.Name, "spec", "forProvider", "name"); err != nil {
		w.t.Fatal(err)
	}
	w.applyAs(patch, i.Owner.Manager)
	now := itemOf(w.t, w.plan(w.fleetOf(&fault.Transport{}, fleet.Options{}), fleet.FromScheme(scheme, nil)), i.Name)
	if now.Class != fleet.Canonical {
		w.t.Errorf("after the patch of the source %s is %s: %s", now.Name, now.Class, now.Message)
	}
	if !strings.Contains(i.Fix.String(), i.SourcePatch) {
		w.t.Errorf("the fix %q does not have the patch", i.Fix.String())
	}
}

// 47: a rollback restores each annotation byte for byte, and removes what the renaming has written.
func TestFleetRenamesAndRollsBack(t *testing.T) {
	w := newWorld(t)
	run(w, persons(w.wire), options{})
	all := w.legacyPersons(5)
	before := map[string]map[string]string{}
	for _, p := range all {
		before[p.Name] = get(w, p).Annotations
	}
	wire := &fault.Transport{}
	f := w.fleetOf(wire, fleet.Options{Batch: 2})
	r := w.apply(f, w.plan(f, fleet.FromScheme(scheme, nil)))
	if n := r.Count(fleet.PhaseRenamed); n != 5 || r.Stopped {
		t.Errorf("%d are renamed, stopped %t: %+v", n, r.Stopped, r.Results)
	}
	w.checkCanonical(all)
	if n := len(wire.Writes()); n != 3*len(all) {
		t.Errorf("%d writes, want 3 for each of %d managed resources", n, len(all))
	}
	if again := w.apply(f, w.plan(f, fleet.FromScheme(scheme, nil))); len(again.Results) != 0 {
		t.Errorf("a second run has work: %+v", again.Results)
	}

	back, err := f.Rollback(t.Context())
	if err != nil || back.Count(fleet.PhaseRolledBack) != 5 {
		t.Errorf("rollback: %v, %+v", err, back.Results)
	}
	for _, p := range all {
		if now, want := get(w, p).Annotations[meta.AnnotationKeyExternalName], before[p.Name][meta.AnnotationKeyExternalName]; now != want {
			t.Errorf("%s: external name is %q, want %q", p.Name, now, want)
		}
		for _, key := range []string{fleet.AnnotationJournal, meta.AnnotationKeyReconciliationPaused} {
			if value, ok := p.Annotations[key]; ok {
				t.Errorf("%s: annotation %s=%s is left", p.Name, key, value)
			}
		}
	}
}

// The first request for a managed resource is the pause, at the resourceVersion of the plan. One with a journal is read first,
// because the next journal contains it.
func TestFleetReadsOnce(t *testing.T) {
	w := newWorld(t)
	run(w, persons(w.wire), options{})
	all := w.legacyPersons(2)
	first := sync.Map{} // the method of the first request, by the path of a managed resource
	cfg := fault.Answering(shared.Config(), func(req *http.Request) *http.Response {
		if strings.Contains(req.URL.Path, "/persons/") {
			first.LoadOrStore(req.URL.Path, req.Method)
		}
		return nil
	})
	rename := func(to func(string) string) {
		t.Helper()
		first.Clear()
		f, err := fleet.New(cfg, personKind, fleet.Options{Scope: fleet.Scope{Namespace: w.namespace}, Identity: fleet.Identity{Fields: []string{"name"}}})
		if err != nil {
			t.Fatal(err)
		}
		items := w.plan(f, func(_ context.Context, o *unstructured.Unstructured) (fleet.Proposal, error) {
			return fleet.Proposal{Name: to(meta.GetExternalName(o))}, nil
		})
		if r := w.apply(f, items); r.Count(fleet.PhaseRenamed) != int64(len(all)) {
			t.Errorf("not all are renamed: %+v", r.Results)
		}
	}
	methods := func() (list []string) {
		first.Range(func(_, method any) bool {
			list = append(list, fmt.Sprint(method))
			return true
		})
		return list
	}
	rename(strings.TrimSpace)
	if got := methods(); !slices.Equal(got, []string{http.MethodPatch, http.MethodPatch}) {
		t.Errorf("without a journal, the first requests are %v", got)
	}
	rename(func(name string) string { return name + " " })
	if got := methods(); !slices.Equal(got, []string{http.MethodGet, http.MethodGet}) {
		t.Errorf("with a journal, the first requests are %v", got)
	}
}

// Each write meets each fault: the process is killed before or after it, or the API server answers by
// 409, by 429, or by a 500 after it was carried out. The next run ends what is begun, and no managed
// resource stays paused. What is renamed can be rolled back.
func TestFleetFaults(t *testing.T) {
	for reason, one := range fault.All() {
		for at := range 2 * 3 { // writes of two managed resources
			t.Run(fmt.Sprintf("%s, write %d", reason, at), func(t *testing.T) {
				w := newWorld(t)
				run(w, persons(w.wire), options{})
				all := w.legacyPersons(2)
				wire := &fault.Transport{At: at, Fault: one}
				f := w.fleetOf(wire, fleet.Options{Canaries: 2})
				items := w.plan(f, fleet.FromScheme(scheme, nil))
				wire.Run(t.Context(), func(ctx context.Context) {
					r, err := f.Apply(ctx, items)
					if killed := strings.HasPrefix(reason, "killed"); killed != (err != nil) {
						t.Errorf("the run ended with %v", err)
					} else if killed && r.Stopped {
						t.Error("an end of the context is reported as a bad managed resource")
					}
				})
				next := w.fleetOf(&fault.Transport{}, fleet.Options{})
				w.apply(next, w.plan(next, fleet.FromScheme(scheme, nil)))
				w.checkCanonical(all)
				w.checkRollsBack(next, all)
			})
		}
	}
}

// checkRollsBack says that the old names come back, and that nothing of a renaming is left.
func (w *world) checkRollsBack(f *fleet.Fleet, all []*person) {
	w.t.Helper()
	if _, err := f.Rollback(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	for _, p := range all {
		if name := meta.GetExternalName(get(w, p)); !strings.HasSuffix(name, " ") {
			w.t.Errorf("%s: external name is %q after the rollback", p.Name, name)
		}
		for _, key := range []string{fleet.AnnotationJournal, meta.AnnotationKeyReconciliationPaused} {
			if value, ok := p.Annotations[key]; ok {
				w.t.Errorf("%s: annotation %s=%s is left", p.Name, key, value)
			}
		}
	}
}

// A run that is killed after any step is rolled back while the provider is away, also if the rollback
// meets a fault itself.
func TestFleetRollbackAfterKill(t *testing.T) {
	for at := range 3 {
		for reason, one := range fault.All() {
			t.Run(fmt.Sprintf("write %d, then %s", at, reason), func(t *testing.T) {
				w := newWorld(t)
				provider := run(w, persons(w.wire), options{})
				all := w.legacyPersons(1)
				wire := &fault.Transport{At: at, Fault: fault.All()["killed after the write"]}
				f := w.fleetOf(wire, fleet.Options{})
				items := w.plan(f, fleet.FromScheme(scheme, nil))
				wire.Run(t.Context(), func(ctx context.Context) { _, _ = f.Apply(ctx, items) })
				provider.stop()
				wire = &fault.Transport{Fault: one}
				f = w.fleetOf(wire, fleet.Options{})
				wire.Run(t.Context(), func(ctx context.Context) { _, _ = f.Rollback(ctx) })
				w.checkRollsBack(w.fleetOf(&fault.Transport{}, fleet.Options{}), all)
			})
		}
	}
}

// A wrong name is undone: that of another external resource, and one that none has, while the provider can only observe. The others
// are not begun.
func TestFleetCanary(t *testing.T) {
	for reason, test := range map[string]struct {
		name   func(w *world) string
		proof  time.Duration
		reason *godwit.Reason
	}{
		"another external resource": {func(w *world) string { return w.add(entry{Name: "other"}).ID }, awaitLimit, fleet.ReasonIdentityChanged},
		"no external resource":      {func(*world) string { return unknownID }, awaitLimit, fleet.ReasonNoExternalResource},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			kind := persons(w.wire)
			run(w, kind, options{})
			all := w.legacyPersons(3)
			wrong := test.name(w)
			f := w.fleetOf(&fault.Transport{}, fleet.Options{ProofTimeout: test.proof})
			items := w.plan(f, func(ctx context.Context, o *unstructured.Unstructured) (fleet.Proposal, error) {
				if o.GetName() == all[0].Name {
					return fleet.Proposal{Name: wrong, Form: "Old"}, nil
				}
				return fleet.FromScheme(scheme, nil)(ctx, o)
			})
			r := w.apply(f, items)
			if r.Results[0].Phase != fleet.PhaseUndone || r.Results[0].Reason != test.reason || !r.Stopped {
				t.Errorf("the canary is %s, %s: %s", r.Results[0].Phase, r.Results[0].Reason, r.Results[0].Message)
			}
			for _, one := range r.Results[1:] {
				if one.Phase != fleet.PhaseSkipped || one.Reason != fleet.ReasonStopped {
					t.Errorf("%s is %s, %s", one.Name, one.Phase, one.Reason)
				}
			}
			for _, p := range all {
				if name := meta.GetExternalName(get(w, p)); !strings.HasSuffix(name, " ") || p.Annotations[fleet.AnnotationJournal] != "" {
					t.Errorf("%s: external name is %q, annotations %v", p.Name, name, p.Annotations)
				}
				if got := p.Spec.ManagementPolicies; len(got) != 1 || got[0] != "*" {
					t.Errorf("%s: the management policies are %v", p.Name, got)
				}
			}
			if n := w.wire.count("Add", "Write"); n != 0 {
				t.Errorf("%d writes to the directory", n)
			}
		})
	}
}

// A renaming that is undone leaves the one before it as it was, so that it can still be rolled back.
func TestFleetUndoKeepsTheJournal(t *testing.T) {
	w := newWorld(t)
	run(w, persons(w.wire), options{})
	all := w.legacyPersons(1)
	f := w.fleetOf(&fault.Transport{}, fleet.Options{})
	w.apply(f, w.plan(f, fleet.FromScheme(scheme, nil)))
	journal := get(w, all[0]).Annotations[fleet.AnnotationJournal]
	for reason, one := range fault.All() {
		wire := &fault.Transport{At: 2, Fault: one} // the write of the old name
		f = w.fleetOf(wire, fleet.Options{ProofTimeout: time.Second})
		wrong := func(context.Context, *unstructured.Unstructured) (fleet.Proposal, error) {
			return fleet.Proposal{Name: unknownID, Form: "Old"}, nil
		}
		items := w.plan(f, wrong)
		wire.Run(t.Context(), func(ctx context.Context) { _, _ = f.Apply(ctx, items) })
		f = w.fleetOf(&fault.Transport{}, fleet.Options{ProofTimeout: time.Second})
		if items = w.plan(f, wrong); items[0].Action == fleet.Resume {
			w.apply(f, items)
		}
		if now := get(w, all[0]).Annotations[fleet.AnnotationJournal]; now != journal {
			t.Errorf("%s: the journal is %s, want %s", reason, now, journal)
		}
	}
	w.checkRollsBack(f, all)
}

// slowly is a directory that takes its time to create.
type slowly struct {
	directory
	add time.Duration
}

func (s slowly) Add(ctx context.Context, e entry) (entry, error) {
	time.Sleep(s.add)
	return s.directory.Add(ctx, e)
}

// plainPersons are persons of a provider without package crossplane, whose external system makes the IDs and allows equal names.
func (w *world) plainPersons(n int, add time.Duration) []*person {
	w.t.Helper()
	w.memory.twins = true
	w.manage(options{}, func(m manager.Manager) ([]managed.ReconcilerOption, error) {
		c := plainPerson(slowly{w.wire, add})
		c.kube = m.GetClient()
		c.looksUp = func(resource.Managed) bool { return false }
		c.id = func(name string) (string, error) { return name, nil }
		return []managed.ReconcilerOption{
			managed.WithManagementPolicies(),
			managed.WithExternalConnector(managed.ExternalConnectorFn(func(context.Context, resource.Managed) (managed.ExternalClient, error) { return c, nil })),
			managed.WithInitializers(),
		}, nil
	}, groupVersion.WithKind("Person"))
	all := make([]*person, n)
	for i := range all {
		all[i] = w.person(fmt.Sprintf("plain-%d", i), nil)
	}
	for _, p := range all {
		w.awaitPerson(p, "created", func(p *person) bool {
			return ready(p) && meta.GetExternalName(p) != "" && p.Status.AtProvider.Name == p.Name
		})
	}
	return all
}

// inVersionTwo gives each person a name that its provider does not know.
func inVersionTwo(_ context.Context, o *unstructured.Unstructured) (fleet.Proposal, error) {
	return fleet.Proposal{Name: "v2-" + meta.GetExternalName(o), Form: "Old"}, nil
}

// TestProviderThatDoesNotKnowTheNewForm finds no external resource and creates none, however fast its external system is, because it
// may only observe. The run ends at the canary.
func TestProviderThatDoesNotKnowTheNewForm(t *testing.T) {
	for reason, add := range map[string]time.Duration{"fast": 0, "slow": 1500 * time.Millisecond} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			all := w.plainPersons(5, add)
			before := map[string]string{}
			for _, p := range all {
				before[p.Name] = meta.GetExternalName(get(w, p))
			}
			f := w.fleetOf(&fault.Transport{}, fleet.Options{})
			r := w.apply(f, w.plan(f, inVersionTwo))
			if got := r.Results[0]; got.Phase != fleet.PhaseUndone || got.Reason != fleet.ReasonNoExternalResource || !r.Stopped {
				t.Errorf("the canary is %s, %s: %s", got.Phase, got.Reason, got.Message)
			}
			w.passes(3)
			if n := len(w.memory.all()); n != len(all) {
				t.Errorf("%d external resources, want %d", n, len(all))
			}
			for _, p := range all {
				if name := meta.GetExternalName(get(w, p)); name != before[p.Name] || meta.IsPaused(p) || p.Annotations[fleet.AnnotationJournal] != "" {
					t.Errorf("%s: external name is %q, want %q; annotations %v", p.Name, name, before[p.Name], p.Annotations)
				}
			}
		})
	}
}

// TestCreationStopsTheRun: where a provider may write under the new name, because the user accepts it, the first creation ends the
// run. Both external resources are named, until the user has accounted for them. The provider writes the name of what it creates,
// also over an undo, until it has recorded the outcome.
func TestCreationStopsTheRun(t *testing.T) {
	for reason, add := range map[string]time.Duration{"fast": 0, "slow": 1500 * time.Millisecond} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			all := w.plainPersons(3, add)
			for _, p := range all {
				o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"managementPolicies": []any{"*"}}}}
				o.SetGroupVersionKind(groupVersion.WithKind("Person"))
				o.SetNamespace(w.namespace)
				o.SetName(p.Name)
				w.applyAs(o, "kustomize-controller")
			}
			w.await("another second, the unit in which crossplane-runtime notes a creation", func() string {
				if at := meta.GetExternalCreateSucceeded(get(w, all[0])); time.Since(at) <= time.Second {
					return at.String()
				}
				return ""
			})
			before := meta.GetExternalName(get(w, all[0]))
			f := w.fleetOf(&fault.Transport{}, fleet.Options{})
			if i := w.plan(f, inVersionTwo)[0]; i.Action != fleet.Skip || i.Reason != fleet.ReasonMayCreate {
				t.Fatalf("without consent it is %s, %s: %s", i.Action, i.Reason, i.Message)
			}
			f = w.fleetOf(&fault.Transport{}, fleet.Options{AcceptUnsafe: true})
			r := w.apply(f, w.plan(f, inVersionTwo))
			got := r.Results[0]
			if got.Phase != fleet.PhaseUndone || got.Reason != fleet.ReasonCreated || !r.Stopped {
				t.Fatalf("it is %s, %s: %s", got.Phase, got.Reason, got.Message)
			}
			second := ""
			for _, e := range w.memory.all() {
				if e.Name == all[0].Name && e.ID != before {
					second = e.ID
				}
			}
			for _, name := range []string{before, second} {
				if name == "" || !strings.Contains(got.Message, name) {
					t.Errorf("the message does not name %q: %s", name, got.Message)
				}
			}
			w.passes(3)
			if p := get(w, all[0]); meta.GetExternalName(p) != before || meta.IsPaused(p) {
				t.Errorf("the annotations are %v, want the name %q", p.Annotations, before)
			}
			if n := len(w.memory.all()); n != len(all)+1 {
				t.Errorf("%d external resources, want one more than %d", n, len(all))
			}
			if i := itemOf(t, w.plan(f, inVersionTwo), all[0].Name); i.Reason != fleet.ReasonSecondResource || !strings.Contains(i.Message, second) {
				t.Errorf("the next plan says %s: %s", i.Reason, i.Message)
			}
			back, err := f.Rollback(t.Context())
			if err != nil || len(back.Results) != 1 || back.Results[0].Reason != fleet.ReasonSecondResource {
				t.Errorf("a rollback says %+v, %v", back.Results, err)
			}
		})
	}
}

// TestForeignResourceIsNotWritten: the new name is that of another person's external resource. Under a provider that may only
// observe, the difference is seen before anything is written to it.
func TestForeignResourceIsNotWritten(t *testing.T) {
	w := newWorld(t)
	bob := w.plainPersons(1, 0)[0]
	foreign := w.add(entry{Name: "alice", Mail: "alice@example.org"})
	f := w.fleetOf(&fault.Transport{}, fleet.Options{})
	r := w.apply(f, w.plan(f, func(context.Context, *unstructured.Unstructured) (fleet.Proposal, error) {
		return fleet.Proposal{Name: foreign.ID, Form: "Old"}, nil
	}))
	if got := r.Results[0]; got.Phase != fleet.PhaseUndone || got.Reason != fleet.ReasonIdentityChanged {
		t.Errorf("it is %s, %s: %s", got.Phase, got.Reason, got.Message)
	}
	w.passes(3)
	if now, err := w.memory.Read(t.Context(), foreign.ID); err != nil || now.Name != "alice" || now.Mail != "alice@example.org" {
		t.Errorf("the foreign resource is %+v, %v", now, err)
	}
	if get(w, bob); meta.GetExternalName(bob) == foreign.ID {
		t.Errorf("%s has the name of the foreign resource", bob.Name)
	}
}

// TestNameOfAnotherNamespaceIsNotDistinct: managed resources of all namespaces share the external system.
func TestNameOfAnotherNamespaceIsNotDistinct(t *testing.T) {
	w := newWorld(t)
	shared := func(p *person) {
		p.Spec.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: w.namespace}
	}
	mine := w.person("mine", func(p *person) { shared(p); meta.SetExternalName(p, "old") })
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "names-other-"}}
	w.create(other)
	theirs := &person{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: other.Name}}
	theirs.Spec.ForProvider.Name = "theirs"
	shared(theirs)
	meta.SetExternalName(theirs, "v2-old")
	w.create(theirs)
	i := itemOf(t, w.plan(w.fleetOf(&fault.Transport{}, fleet.Options{}), inVersionTwo), mine.Name)
	if i.Reason != fleet.ReasonNotDistinct || !strings.Contains(i.Message, other.Name+"/theirs") {
		t.Errorf("it is %s, %s: %s", i.Action, i.Reason, i.Message)
	}
}

// Another client renames, unpauses or deletes the managed resource meanwhile: what it did stays, but a name that is not proven.
func TestFleetOtherClients(t *testing.T) {
	other := "00000000-0000-4000-8000-00000000abcd"
	for reason, test := range map[string]struct {
		at     int // the write before which the other client acts
		act    func(w *world, p *person)
		phase  fleet.Phase
		reason *godwit.Reason
		check  func(p *person) bool
	}{
		"renamed before the pause": {0, func(w *world, p *person) { w.annotate(p, meta.AnnotationKeyExternalName, other) },
			fleet.PhaseSkipped, fleet.ReasonChanged, func(p *person) bool { return meta.GetExternalName(p) == other }},
		"renamed in the pause": {1, func(w *world, p *person) { w.annotate(p, meta.AnnotationKeyExternalName, other) },
			fleet.PhaseSkipped, fleet.ReasonChanged, func(p *person) bool { return meta.GetExternalName(p) == other }},
		"renamed before the proof": {2, func(w *world, p *person) { w.annotate(p, meta.AnnotationKeyExternalName, other) },
			fleet.PhaseUndone, fleet.ReasonChanged, func(p *person) bool { return strings.HasSuffix(meta.GetExternalName(p), " ") }},
		"unpaused": {1, func(w *world, p *person) { w.annotate(p, meta.AnnotationKeyReconciliationPaused, "") },
			fleet.PhaseSkipped, fleet.ReasonChanged, func(p *person) bool { return strings.HasSuffix(meta.GetExternalName(p), " ") }},
		"deleted before the pause": {0, func(w *world, p *person) { w.delete(p); w.awaitGone(p) }, fleet.PhaseGone, nil, nil},
		"deleted in the pause":     {1, func(w *world, p *person) { w.delete(p) }, fleet.PhaseSkipped, fleet.ReasonTerminating, nil},
		"deleted before the proof": {2, func(w *world, p *person) { w.delete(p); w.awaitGone(p) }, fleet.PhaseFailed, fleet.ReasonDeletedUnproven, nil},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			run(w, persons(w.wire), options{})
			p := w.legacyPersons(1)[0]
			f := w.fleetOf(&fault.Transport{Before: func(n int) {
				if n == test.at {
					test.act(w, &person{ObjectMeta: p.ObjectMeta})
				}
			}}, fleet.Options{})
			r := w.apply(f, w.plan(f, fleet.FromScheme(scheme, nil)))
			if got := r.Results[0]; got.Phase != test.phase || got.Reason != test.reason {
				t.Errorf("it is %s, %s: %s; want %s, %s", got.Phase, got.Reason, got.Message, test.phase, test.reason)
			}
			if test.check == nil {
				w.awaitGone(p) // In a pause that stays, no provider would remove the finalizer.
				return
			}
			if get(w, p); !test.check(p) || meta.IsPaused(p) || p.Annotations[fleet.AnnotationJournal] != "" {
				t.Errorf("annotations are %v", p.Annotations)
			}
		})
	}
}

// A provider that is away never reports the pause: the wait is bounded, nothing is changed, and the run
// succeeds when the provider is back.
func TestFleetProviderAway(t *testing.T) {
	w := newWorld(t)
	provider := run(w, persons(w.wire), options{})
	all := w.legacyPersons(2)
	provider.stop()
	before := get(w, all[0]).Annotations
	f := w.fleetOf(&fault.Transport{}, fleet.Options{PauseTimeout: time.Second})
	r := w.apply(f, w.plan(f, fleet.FromScheme(scheme, nil)))
	if got := r.Results[0]; got.Phase != fleet.PhaseDeferred || got.Reason != fleet.ReasonNotPaused || !r.Stopped {
		t.Errorf("it is %s, %s: %s", got.Phase, got.Reason, got.Message)
	}
	if after := get(w, all[0]).Annotations; fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("annotations are %v, want %v", after, before)
	}
	run(w, persons(w.wire), options{})
	f = w.fleetOf(&fault.Transport{}, fleet.Options{})
	w.apply(f, w.plan(f, fleet.FromScheme(scheme, nil)))
	w.checkCanonical(all)
}

// A provider that dies after the renaming does not prove it: the old name comes back.
func TestFleetProviderDies(t *testing.T) {
	w := newWorld(t)
	provider := run(w, persons(w.wire), options{})
	p := w.legacyPersons(1)[0]
	f := w.fleetOf(&fault.Transport{Before: func(n int) {
		if n == 1 {
			provider.kill()
		}
	}}, fleet.Options{ProofTimeout: time.Second})
	r := w.apply(f, w.plan(f, fleet.FromScheme(scheme, nil)))
	if got := r.Results[0]; got.Phase != fleet.PhaseUndone || got.Reason != fleet.ReasonNotReconciled {
		t.Errorf("it is %s, %s: %s", got.Phase, got.Reason, got.Message)
	}
	if name := meta.GetExternalName(get(w, p)); !strings.HasSuffix(name, " ") || meta.IsPaused(p) {
		t.Errorf("annotations are %v", p.Annotations)
	}
}

// A name book saves the names of a cluster, and restores them in another one onto managed resources that
// are paused: nothing is created a second time.
func TestNameBook(t *testing.T) {
	w := newWorld(t)
	provider := run(w, persons(w.wire), options{})
	var all []*person
	for i := range 3 {
		p := w.person(fmt.Sprintf("p-%d", i), nil)
		w.awaitPerson(p, "created", bound)
		all = append(all, p)
	}
	f := w.fleetOf(&fault.Transport{}, fleet.Options{})
	names, unnamed, err := f.Save(t.Context(), nil)
	if err != nil || len(names) != 3 || len(unnamed) != 0 {
		t.Fatalf("saved %v, left out %v: %v", names, unnamed, err)
	}
	store, err := fleet.NewStore(shared.Config(), walk.NewLimiter(walk.Limits{}), w.namespace, "names")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // The second book replaces the first.
		if err := store.Save(t.Context(), fleet.NewSavedNames(time.Now(), names)); err != nil {
			t.Fatal(err)
		}
	}
	provider.stop()
	for _, p := range all {
		w.patch(p, `{"metadata":{"finalizers":null}}`)
		w.delete(p)
		w.awaitGone(p)
	}
	// The cluster is built again from Git, where no manifest has an external name.
	for i := range all {
		all[i] = w.person(all[i].Name, func(p *person) {
			p.UID, p.ResourceVersion = "", ""
			if i > 0 {
				meta.AddAnnotations(p, map[string]string{meta.AnnotationKeyReconciliationPaused: "true"})
			}
		})
	}
	book, err := store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Restore(t.Context(), book.Names, fleet.RestoreOptions{Unpause: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Results[0]; got.Phase != fleet.PhaseSkipped || got.Reason != fleet.ReasonNotPausedYet {
		t.Errorf("the one that is not paused is %s, %s", got.Phase, got.Reason)
	}
	if n := r.Count(fleet.PhaseRestored); n != 2 {
		t.Errorf("%d are restored: %+v", n, r.Results)
	}
	w.delete(all[0])
	created := w.wire.count("Add")
	run(w, persons(w.wire), options{})
	for i, p := range all[1:] {
		w.awaitPerson(p, "adopted", bound)
		if meta.GetExternalName(p) != names[i+1].ExternalName {
			t.Errorf("%s has the name %q, want %q", p.Name, meta.GetExternalName(p), names[i+1].ExternalName)
		}
	}
	if n := w.wire.count("Add"); n != created {
		t.Errorf("%d creations", n-created)
	}
}
