package existing_test

import (
	"context"
	"errors"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/externalname/crossplane/existing"
)

// object is a managed resource with the fields that the package compares and copies.
type object struct {
	fake.Managed

	Spec   spec   `json:"spec"`
	Status status `json:"status"`
}

type spec struct {
	ForProvider map[string]any `json:"forProvider"`
}

type status struct {
	AtProvider map[string]any `json:"atProvider"`
}

func (o *object) DeepCopyObject() runtime.Object {
	copied := &object{Managed: *o.Managed.DeepCopyObject().(*fake.Managed), Spec: o.Spec, Status: o.Status} //nolint:forcetypeassert // It is its type.
	return copied
}

func newObject(name string, annotations ...string) *object {
	o := &object{}
	o.SetName("jane")
	o.SetUID("u-1")
	if name != "" {
		meta.SetExternalName(o, name)
	}
	for i := 0; i < len(annotations); i += 2 {
		meta.AddAnnotations(o, map[string]string{annotations[i]: annotations[i+1]})
	}
	return o
}

// provider is a connector that remembers what it has found, as Upjet does.
type provider struct {
	resources  map[string]bool
	remembered string
	bySpec     string
	running    bool
	createErr  error
	creates    string
	renames    string
	onObserve  func(*object)
	closed     int
}

func (p *provider) Connect(context.Context, resource.Managed) (managed.ExternalClient, error) {
	return managed.ExternalClientFns{ObserveFn: p.observe, CreateFn: p.create, UpdateFn: p.update, DeleteFn: p.delete,
		DisconnectFn: func(context.Context) error { p.closed++; return nil }}, nil
}

func (p *provider) observe(_ context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	if p.running {
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	}
	name := meta.GetExternalName(mg)
	switch {
	case p.remembered != "":
		name = p.remembered
	case name == "":
		name = p.bySpec
	}
	if !p.resources[name] {
		return managed.ExternalObservation{}, nil
	}
	p.remembered = name
	meta.SetExternalName(mg, name)
	if p.onObserve != nil {
		p.onObserve(mg.(*object)) //nolint:forcetypeassert // Tests have one type.
	}
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

func (p *provider) create(_ context.Context, mg resource.Managed) (managed.ExternalCreation, error) {
	if p.createErr != nil {
		return managed.ExternalCreation{}, p.createErr
	}
	if p.creates != "" {
		meta.SetExternalName(mg, p.creates)
	}
	return managed.ExternalCreation{}, nil
}

func (p *provider) update(context.Context, resource.Managed) (managed.ExternalUpdate, error) {
	if p.renames != "" {
		p.resources = map[string]bool{p.renames: true}
		p.remembered = p.renames
	}
	return managed.ExternalUpdate{}, nil
}

func (p *provider) delete(context.Context, resource.Managed) (managed.ExternalDelete, error) {
	p.resources = nil
	return managed.ExternalDelete{}, nil
}

var names = externalname.Scheme[string]{Codec: externalname.Text(externalname.Mutable(), externalname.Check("lower case", func(text string) bool {
	return text != "BAD"
}))}

func connect(t *testing.T, p *provider, mg *object, change ...func(*existing.Kind[string])) crossplane.External[resource.Managed, string, existing.Observed] {
	t.Helper()
	kind := existing.Kind[string]{Names: names, Connector: p, Forget: func(resource.Object) error { p.remembered = ""; return nil }}
	for _, c := range change {
		c(&kind)
	}
	e, err := existing.WrapConnector(kind).Connect(t.Context(), mg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func withoutForget(k *existing.Kind[string]) { k.Forget = nil }

func TestGet(t *testing.T) {
	cases := map[string]struct {
		provider provider
		object   *object
		change   []func(*existing.Kind[string])
		found    string
		notFound bool
	}{
		"a name":                    {provider{resources: map[string]bool{"a": true}}, newObject("a"), nil, "a", false},
		"a name without a resource": {provider{}, newObject("a"), nil, "", true},
		"what the client remembers, after the user has changed the name": {
			provider{resources: map[string]bool{"a": true, "b": true}, remembered: "b"},
			newObject("a", crossplane.AnnotationBoundName, "b"), nil, "a", false,
		},
		"a new name without a resource, while the client remembers the old one": {
			provider{resources: map[string]bool{"b": true}, remembered: "b"},
			newObject("a", crossplane.AnnotationBoundName, "b"), nil, "", true,
		},
		"a client that can't forget": {
			provider{resources: map[string]bool{"a": true, "b": true}, remembered: "b"},
			newObject("a", crossplane.AnnotationBoundName, "b"), []func(*existing.Kind[string]){withoutForget}, "", false,
		},
		"a resource that the external system has renamed": {
			provider{resources: map[string]bool{"b": true}, remembered: "b"},
			newObject("a", crossplane.AnnotationBoundName, "a"), nil, "", false,
		},
		"a client that sets a name which the kind refuses": {
			provider{resources: map[string]bool{"BAD": true}, remembered: "BAD"}, newObject("a"), nil, "", false,
		},
	}
	for name, tc := range cases {
		e := connect(t, &tc.provider, tc.object, tc.change...)
		got, err := e.Get(t.Context(), "a")
		switch {
		case tc.found != "":
			if err != nil || meta.GetExternalName(got.Object) != tc.found {
				t.Errorf("%s: %v, want %s", name, err, tc.found)
			}
		case err == nil || errors.Is(err, crossplane.ErrNotFound) != tc.notFound:
			t.Errorf("%s: %v, not found should be %v", name, err, tc.notFound)
		}
		if got := meta.GetExternalName(tc.object); got != "a" {
			t.Errorf("%s: the object itself now has the name %q", name, got)
		}
	}
}

func TestCreate(t *testing.T) {
	cases := map[string]struct {
		provider provider
		name     string
		key      string
		want     error
	}{
		"a name from the client":            {provider{creates: "new"}, "", "new", nil},
		"again, after drift":                {provider{creates: "new"}, "old", "new", nil},
		"a resource that fits the spec":     {provider{bySpec: "a", resources: map[string]bool{"a": true}}, "", "", crossplane.ErrAlreadyExists},
		"a name that the kind refuses":      {provider{creates: "BAD"}, "", "", crossplane.ErrOutcomeUnknown},
		"Terraform's text of a lost answer": {provider{createErr: errors.New(`[{0 Post "http://x": EOF  []}]`)}, "", "", crossplane.ErrOutcomeUnknown},
	}
	for name, tc := range cases {
		mg := newObject(tc.name)
		got, err := connect(t, &tc.provider, mg).Create(t.Context(), mg.DeepCopyObject().(resource.Managed)) //nolint:forcetypeassert // It is its type.
		if got.Key != tc.key || !errors.Is(err, tc.want) {
			t.Errorf("%s: key %q, error %v, want %q, %v", name, got.Key, err, tc.key, tc.want)
		}
	}
	refused := errors.New("400")
	p := &provider{createErr: refused}
	if _, err := connect(t, p, newObject("")).Create(t.Context(), newObject("")); !errors.Is(err, refused) || errors.Is(err, crossplane.ErrOutcomeUnknown) {
		t.Errorf("a refused creation: %v", err)
	}
}

// Upjet creates asynchronously by default: Create returns at once, without a name, and with the error of the creation before.
func TestAsynchronousCreate(t *testing.T) {
	p := &provider{createErr: errors.New("the error of the creation before")}
	creations := &existing.Creations{}
	kind := existing.Kind[string]{Names: names, Connector: p, Creations: creations}
	process := existing.WrapConnector(kind)
	mg := newObject("old")
	pass := func(r crossplane.Resource[resource.Managed, string, existing.Observed]) crossplane.External[resource.Managed, string, existing.Observed] {
		e, err := r.Connect(t.Context(), mg)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	begin := func() string {
		created, err := pass(process).Create(t.Context(), newObject("old"))
		if err != nil || created.Operation == "" {
			t.Fatalf("begun: %+v, %v", created, err)
		}
		return created.Operation
	}
	await := func(reason, operation string, want error) {
		t.Helper()
		if _, err := pass(process).Operation.Await(t.Context(), operation); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", reason, err, want)
		}
	}
	operation := begin()
	p.running = true
	await("while it runs", operation, crossplane.ErrOperationRunning)
	other := existing.Kind[string]{Names: names, Connector: p, Creations: &existing.Creations{}}
	if _, err := pass(existing.WrapConnector(other)).Operation.Await(t.Context(), operation); !errors.Is(err, crossplane.ErrOperationNotFound) {
		t.Errorf("in another process, which can't know how it ends: %v", err)
	}
	p.running = false
	await("before the provider has reported the end", operation, crossplane.ErrOperationRunning)
	creations.Ended(types.NamespacedName{Name: "jane"}, errors.New("403"))
	await("after it has failed", operation, crossplane.ErrOperationFailed)
	operation = begin()
	await("the end of the one before is not that of the next one", operation, crossplane.ErrOperationRunning)
	creations.Ended(types.NamespacedName{Name: "jane"}, errors.New("read: EOF"))
	await("after its answer was lost", operation, crossplane.ErrOperationNotFound)
	operation = begin()
	creations.Ended(types.NamespacedName{Name: "jane"}, nil)
	await("after a success without a resource", operation, crossplane.ErrOperationNotFound)
	p.remembered, p.resources = "new", map[string]bool{"new": true}
	if key, err := pass(process).Operation.Await(t.Context(), operation); key != "new" || err != nil {
		t.Errorf("after it has ended: %q, %v", key, err)
	}
	process.Removed(mg)
	await("after the object was removed", operation, crossplane.ErrOperationNotFound)
}

func TestUpdateAndDelete(t *testing.T) {
	mg := newObject("a")
	p := &provider{resources: map[string]bool{"a": true}, renames: "b"}
	e := connect(t, p, mg)
	observed, err := e.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if key, err := e.Update(t.Context(), newObject("a"), "a", observed); key != "b" || err != nil {
		t.Errorf("an update that renames returns %q, %v", key, err)
	}
	if err := e.Delete(t.Context(), "a"); err != nil || p.resources != nil {
		t.Errorf("after the deletion: %v, %v", p.resources, err)
	}
	if err := e.Close(t.Context()); err != nil || p.closed != 2 {
		t.Errorf("%d of 2 clients are disconnected, %v", p.closed, err)
	}
}

func TestWhatTheClientWrites(t *testing.T) {
	mg := newObject("a", "example.org/kept", "1")
	mg.Spec.ForProvider = map[string]any{"size": 3, "name": "a", "tags": []any{"x", "y"}, "only": "spec", "net": map[string]any{"cidr": "10"}}
	p := &provider{resources: map[string]bool{"a": true}, onObserve: func(o *object) {
		o.Spec.ForProvider = map[string]any{"late": true}
		o.Status.AtProvider = map[string]any{"size": 4, "name": "a", "tags": []any{"y", "x"}, "id": "i", "net": map[string]any{"cidr": "11"}}
		meta.AddAnnotations(o, map[string]string{"example.org/state": "s", "example.org/kept": "1"})
		c := o.GetCondition("Ready")
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "Starting", "not yet"
		o.SetConditions(c)
	}}
	e := connect(t, p, mg)
	observed, err := e.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"example.org/state": "s"}, e.Annotations(observed)); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if got, want := e.Lifecycle(observed), (crossplane.Lifecycle{State: crossplane.Failed, Message: "not yet"}); got != want {
		t.Errorf("lifecycle %+v, want %+v", got, want)
	}
	written := newObject("a")
	e.Mirror(written, observed)
	if written.Status.AtProvider["size"] != 4 || written.Spec.ForProvider != nil {
		t.Errorf("the mirrored object has spec %v, status %v", written.Spec, written.Status)
	}
	if list := e.Diff(mg, observed); list != nil {
		t.Errorf("the client says that nothing differs, and the difference is %v", list)
	}
}

func TestDiff(t *testing.T) {
	desired := map[string]any{"size": 3, "name": "a", "tags": []any{"x", "y"}, "only": "spec", "net": map[string]any{"cidr": "10"}}
	actual := map[string]any{"size": 4, "name": "a", "tags": []any{"y", "x"}, "id": "i", "net": map[string]any{"cidr": "11"}}
	fields := []crossplane.Difference{{Field: "net.cidr", Desired: "10", Observed: "11"}, {Field: "size", Desired: "3", Observed: "4"}}
	cases := map[string]struct {
		observation managed.ExternalObservation
		actual      map[string]any
		policy      string
		want        []crossplane.Difference
	}{
		"the client says that it differs":     {managed.ExternalObservation{}, actual, "*", fields},
		"the client says what differs":        {managed.ExternalObservation{Diff: "size"}, actual, "*", []crossplane.Difference{{Field: "spec.forProvider", Message: "size"}}},
		"nothing shows what differs":          {managed.ExternalObservation{}, desired, "*", []crossplane.Difference{{Field: "spec.forProvider", Message: "the provider's client does not say what differs"}}},
		"the client says that it is the same": {managed.ExternalObservation{ResourceUpToDate: true}, actual, "*", nil},
		"under Observe no client compares":    {managed.ExternalObservation{ResourceUpToDate: true}, actual, "Observe", fields},
		"under Observe, without a difference": {managed.ExternalObservation{ResourceUpToDate: true}, desired, "Observe", nil},
	}
	for name, tc := range cases {
		mg := newObject("a")
		mg.Spec.ForProvider, mg.Status.AtProvider = desired, tc.actual
		policies := mg.GetManagementPolicies()
		mg.SetManagementPolicies(append(policies, policyOf(policies, tc.policy)))
		got := connect(t, &provider{}, mg).Diff(mg, existing.Observed{Object: mg, Observation: tc.observation})
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// policyOf converts a text to a management policy, whose package depends on the version of crossplane-runtime.
func policyOf[P ~string](_ []P, text string) P { return P(text) }

// A legacy name that is a hint is looked up as the client always did. An object without a name is not.
func TestFind(t *testing.T) {
	hints := func(k *existing.Kind[string]) {
		k.Names.Codec = externalname.GUID()
		k.Names.Legacy = []externalname.Form[string]{externalname.LegacyObjectName[string]()}
	}
	const guid = "0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11"
	p := &provider{resources: map[string]bool{guid: true}, remembered: guid}
	mg := newObject("jane")
	if keys, err := connect(t, p, mg, hints).Find(t.Context(), mg); err != nil || len(keys) != 1 || keys[0] != guid {
		t.Errorf("a hint finds %v, %v", keys, err)
	}
	if keys, err := connect(t, &provider{}, mg, hints).Find(t.Context(), mg); err != nil || len(keys) != 0 {
		t.Errorf("a hint without a resource finds %v, %v", keys, err)
	}
	unnamed := newObject("")
	if _, err := connect(t, p, unnamed, hints).Find(t.Context(), unnamed); !errors.Is(err, crossplane.ErrOutcomeUnknown) {
		t.Errorf("an object without a name is looked up: %v", err)
	}
	if connect(t, p, mg).Find != nil {
		t.Error("a kind without hints looks objects up")
	}
}
