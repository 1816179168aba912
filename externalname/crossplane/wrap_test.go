package crossplane_test

import (
	"context"
	"errors"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane"
)

const guid = "0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11"

func newManaged(name string, policies ...string) *fake.Managed {
	mg := &fake.Managed{}
	mg.SetName("jane")
	mg.SetManagementPolicies(policiesOf(mg.GetManagementPolicies(), policies))
	if name != "" {
		meta.SetExternalName(mg, name)
	}
	return mg
}

// policiesOf converts texts to management policies, whose package depends on the version of crossplane-runtime.
func policiesOf[P ~string](list []P, policies []string) []P {
	for _, policy := range policies {
		list = append(list, P(policy))
	}
	return list
}

// client is that of a provider before it adopts rules.
type client struct {
	observation managed.ExternalObservation
	err         error
	calls       int
	onCreate    func(resource.Managed)
}

func (c *client) Observe(context.Context, resource.Managed) (managed.ExternalObservation, error) {
	c.calls++
	return c.observation, c.err
}

func (c *client) Create(_ context.Context, mg resource.Managed) (managed.ExternalCreation, error) {
	c.calls++
	if c.onCreate != nil {
		c.onCreate(mg)
	}
	return managed.ExternalCreation{}, c.err
}

func (c *client) Update(context.Context, resource.Managed) (managed.ExternalUpdate, error) {
	c.calls++
	return managed.ExternalUpdate{}, c.err
}

func (c *client) Delete(context.Context, resource.Managed) (managed.ExternalDelete, error) {
	c.calls++
	return managed.ExternalDelete{}, c.err
}

func (c *client) Disconnect(context.Context) error { return nil }

type events struct{ list []event.Event }

func (e *events) Event(_ runtime.Object, recorded event.Event) { e.list = append(e.list, recorded) }
func (e *events) WithAnnotations(...string) event.Recorder     { return e }

func TestNamesMustParse(t *testing.T) {
	rule := crossplane.NamesMustParse(externalname.Scheme[string]{
		Codec: externalname.GUID(), Legacy: []externalname.Form[string]{externalname.LegacyObjectName[string]()},
	})
	for name, calls := range map[string]int{"": 1, guid: 1, "jane": 1, "john": 0, "urn:uuid:" + guid: 0} {
		inner := &client{}
		_, err := crossplane.Wrap(inner, rule).Observe(t.Context(), newManaged(name))
		var invalid *externalname.InvalidError
		if inner.calls != calls || errors.As(err, &invalid) != (calls == 0) {
			t.Errorf("name %q: %d calls, error %v", name, inner.calls, err)
		}
	}
}

func TestUnnamedIsAbsent(t *testing.T) {
	inner := &client{observation: managed.ExternalObservation{ResourceExists: true}}
	wrapped := crossplane.Wrap(inner, crossplane.UnnamedIsAbsent())
	if o, err := wrapped.Observe(t.Context(), newManaged("")); o.ResourceExists || err != nil || inner.calls != 0 {
		t.Errorf("without a name: %+v, %v, %d calls", o, err, inner.calls)
	}
	if o, err := wrapped.Observe(t.Context(), newManaged(guid)); !o.ResourceExists || err != nil {
		t.Errorf("with a name: %+v, %v", o, err)
	}
}

func TestAbsentNeedsCreate(t *testing.T) {
	cases := map[string]struct {
		policies []string
		deleted  bool
		want     bool
	}{
		"all":          {[]string{"*"}, false, false},
		"create":       {[]string{"Observe", "Create"}, false, false},
		"observe only": {[]string{"Observe"}, false, false}, // crossplane-runtime reports it.
		"late init":    {[]string{"Observe", "LateInitialize"}, false, true},
		"update":       {[]string{"Observe", "Update"}, false, true},
		"deleted":      {[]string{"Observe", "Delete"}, true, false},
	}
	for name, tc := range cases {
		mg := newManaged(guid, tc.policies...)
		if tc.deleted {
			now := metav1.Now()
			mg.SetDeletionTimestamp(&now)
		}
		_, err := crossplane.Wrap(&client{}, crossplane.AbsentNeedsCreate()).Observe(t.Context(), mg)
		if (err != nil) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFailedCreateKeepsName(t *testing.T) {
	for err, want := range map[error]string{nil: "new", errors.New("failed"): "old"} {
		mg := newManaged("old")
		inner := &client{err: err, onCreate: func(mg resource.Managed) { meta.SetExternalName(mg, "new") }}
		if _, got := crossplane.Wrap(inner, crossplane.FailedCreateKeepsName()).Create(t.Context(), mg); !errors.Is(got, err) || meta.GetExternalName(mg) != want {
			t.Errorf("after error %v: name %q, error %v", err, meta.GetExternalName(mg), got)
		}
	}
}

func TestDiffIsReported(t *testing.T) {
	recorder := &events{}
	inner := &client{}
	wrapped := crossplane.Wrap(inner, crossplane.DiffIsReported(recorder))
	mg := newManaged(guid)
	steps := []struct {
		reason string
		diff   string
		same   bool
		status corev1.ConditionStatus
		events int
	}{
		{"in sync", "", true, corev1.ConditionFalse, 0},
		{"a diff", "title: a != b", false, corev1.ConditionTrue, 1},
		{"the same diff", "title: a != b", false, corev1.ConditionTrue, 1},
		{"another diff", "title: a != c", false, corev1.ConditionTrue, 2},
		{"no diff that is said", "", false, corev1.ConditionTrue, 3},
		{"in sync again", "", true, corev1.ConditionFalse, 3},
		{"the first diff again", "title: a != b", false, corev1.ConditionTrue, 4},
	}
	for _, step := range steps {
		inner.observation = managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: step.same, Diff: step.diff}
		if _, err := wrapped.Observe(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
		if got := mg.GetCondition(crossplane.TypeDrift).Status; got != step.status || len(recorder.list) != step.events {
			t.Errorf("%s: condition %s, %d events, want %s, %d", step.reason, got, len(recorder.list), step.status, step.events)
		}
	}
	if _, err := wrapped.Update(t.Context(), mg); err != nil {
		t.Fatal(err)
	}
	if got := mg.GetCondition(crossplane.TypeDrift).Status; got != corev1.ConditionUnknown {
		t.Errorf("after an update, before the next observation, drift is %s", got)
	}
}

func TestDeleteRules(t *testing.T) {
	gone := errors.New("404")
	inner := &client{err: gone}
	if _, err := crossplane.Wrap(inner, crossplane.DeleteAcceptsNotFound(func(err error) bool { return errors.Is(err, gone) })).Delete(t.Context(), newManaged(guid)); err != nil {
		t.Errorf("a resource that is gone: %v", err)
	}
	if _, err := crossplane.Wrap(inner, crossplane.DeleteAcceptsNotFound(func(error) bool { return false })).Delete(t.Context(), newManaged(guid)); !errors.Is(err, gone) {
		t.Errorf("another error became %v", err)
	}
	deleting := false
	inner = &client{}
	wrapped := crossplane.Wrap(inner, crossplane.DeleteOnce(func(resource.Managed) bool { return deleting }))
	for range 3 {
		if _, err := wrapped.Delete(t.Context(), newManaged(guid)); err != nil {
			t.Fatal(err)
		}
		deleting = true
	}
	if inner.calls != 1 {
		t.Errorf("%d deletions", inner.calls)
	}
}

func TestConflictsAreReported(t *testing.T) {
	sentinel := errors.New("etag")
	conflict := kerrors.NewConflict(schema.GroupResource{Resource: "people"}, "jane", sentinel)
	wrapped := crossplane.Wrap(&client{err: conflict}, crossplane.ConflictsAreReported())
	_, observe := wrapped.Observe(t.Context(), newManaged(guid))
	_, create := wrapped.Create(t.Context(), newManaged(guid))
	_, update := wrapped.Update(t.Context(), newManaged(guid))
	_, remove := wrapped.Delete(t.Context(), newManaged(guid))
	for call, err := range map[string]error{"Observe": observe, "Create": create, "Update": update, "Delete": remove} {
		if err == nil || kerrors.IsConflict(err) || err.Error() != conflict.Error() || !errors.Is(err, conflict) {
			t.Errorf("%s returned %v; a conflict of Kubernetes: %v", call, err, kerrors.IsConflict(err))
		}
	}
}

// The rules that come first see a call first.
func TestWrapOrder(t *testing.T) {
	inner := &client{}
	wrapped := crossplane.Wrap(inner, crossplane.NamesMustParse(externalname.Scheme[string]{Codec: externalname.GUID()}), crossplane.UnnamedIsAbsent())
	if _, err := wrapped.Observe(t.Context(), newManaged("nonsense")); err == nil {
		t.Error("a malformed name passed")
	}
	if _, err := wrapped.Observe(t.Context(), newManaged("")); err != nil || inner.calls != 0 {
		t.Errorf("an empty name: %v, %d calls", err, inner.calls)
	}
}
