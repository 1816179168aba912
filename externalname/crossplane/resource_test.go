package crossplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/externalname"
)

// DefaultInitializers are those of crossplane-runtime without the external name. This fails when
// the runtime gets another one.
func TestRuntimeInitializers(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "test", Version: "v1", Kind: "Managed"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(kind, &fake.Managed{})
	reconciler := managed.NewReconciler(&fake.Manager{Scheme: scheme, Client: client.Client(nil)}, resource.ManagedKind(kind))
	initializer := reflect.ValueOf(reconciler).Elem().FieldByName("managed").FieldByName("Initializer")
	if got := initializer.Elem().Type(); got != reflect.TypeFor[*managed.NameAsExternalName]() {
		t.Errorf("crossplane-runtime initializes by %s: DefaultInitializers has to follow", got)
	}
	if got := DefaultInitializers(nil); len(got) != 0 {
		t.Errorf("DefaultInitializers are %v", got)
	}
}

func TestValidate(t *testing.T) {
	valid := func(change func(*Resource[*fake.Managed, string, string])) Resource[*fake.Managed, string, string] {
		r := Resource[*fake.Managed, string, string]{
			Names: externalname.Scheme[string]{Codec: externalname.GUID()},
			Connect: func(context.Context, *fake.Managed) (External[*fake.Managed, string, string], error) {
				return External[*fake.Managed, string, string]{}, nil
			},
		}
		change(&r)
		return r
	}
	fromStatus := func(*fake.Managed) (string, bool) { return "", false }
	cases := map[string]struct {
		resource Resource[*fake.Managed, string, string]
		want     string
	}{
		"valid":      {valid(func(*Resource[*fake.Managed, string, string]) {}), ""},
		"no codec":   {valid(func(r *Resource[*fake.Managed, string, string]) { r.Names.Codec = nil }), "Names.Codec"},
		"no connect": {valid(func(r *Resource[*fake.Managed, string, string]) { r.Connect = nil }), "Connect"},
		"hybrid":     {valid(func(r *Resource[*fake.Managed, string, string]) { r.KeyFromStatus = fromStatus }), "NameFromCreate"},
		"no reason": {valid(func(r *Resource[*fake.Managed, string, string]) {
			r.KeyFromStatus, r.Exceptions = fromStatus, []Exception{{Rule: RuleNameFromCreate, Reason: " "}}
		}), "no reason"},
		"declared": {valid(func(r *Resource[*fake.Managed, string, string]) {
			r.KeyFromStatus, r.Exceptions = fromStatus, []Exception{{Rule: RuleNameFromCreate, Reason: "fields"}}
		}), ""},
	}
	for name, tc := range cases {
		err := tc.resource.validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	c := &connector[*fake.Managed, string, string]{resource: valid(func(*Resource[*fake.Managed, string, string]) {})}
	if _, err := c.Connect(t.Context(), &fake.Managed{}); err == nil || !strings.Contains(err.Error(), "External.Get") {
		t.Errorf("a client without functions: %v", err)
	}
}

// A kind that has to look objects up needs a function for it.
func TestFindIsRequired(t *testing.T) {
	for reason, change := range map[string]func(*Resource[*fake.Managed, string, string]){
		"unnamed objects": func(r *Resource[*fake.Managed, string, string]) { r.FindUnnamed = true },
		"a legacy hint": func(r *Resource[*fake.Managed, string, string]) {
			r.Names.Legacy = []externalname.Form[string]{externalname.LegacyObjectName[string]()}
		},
	} {
		r := Resource[*fake.Managed, string, string]{Names: externalname.Scheme[string]{Codec: externalname.GUID()}, Connect: func(context.Context, *fake.Managed) (External[*fake.Managed, string, string], error) {
			return External[*fake.Managed, string, string]{
				Get:    func(context.Context, string) (string, error) { return "", nil },
				Create: func(context.Context, *fake.Managed) (Created[string], error) { return Created[string]{}, nil },
				Update: func(context.Context, *fake.Managed, string, string) (string, error) { return "", nil },
				Delete: func(context.Context, string) error { return nil },
				Mirror: func(*fake.Managed, string) {},
				Diff:   func(*fake.Managed, string) []Difference { return nil },
			}, nil
		}}
		c := &connector[*fake.Managed, string, string]{resource: r}
		if _, err := c.Connect(t.Context(), &fake.Managed{}); err != nil {
			t.Errorf("%s: without it Find is not needed: %v", reason, err)
		}
		change(&c.resource)
		if _, err := c.Connect(t.Context(), &fake.Managed{}); err == nil || !strings.Contains(err.Error(), "External.Find") {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// What an external system says is bounded before it ends in a condition.
func TestLongAnswers(t *testing.T) {
	page := errors.Join(ErrNotFound, errors.New(strings.Repeat("<html>\xff", 1<<20)))
	if err := external(page); len(err.Error()) > 1010 || !errors.Is(err, ErrNotFound) {
		t.Errorf("the error has %d bytes, is ErrNotFound: %v", len(err.Error()), errors.Is(err, ErrNotFound))
	}
	if err := external(nil); err != nil {
		t.Errorf("no error became %v", err)
	}
	many := &MultipleMatchesError{Names: strings.Split(strings.Repeat("a,", 9999)+"a", ",")}
	if got, want := many.Error(), "10000 external resources match: a, a, a, a, a and 9995 more"; got != want {
		t.Errorf("message is %q, want %q", got, want)
	}
	if got := (Lifecycle{State: Failed, Message: strings.Repeat("a", 1<<20)}).condition(); len(got.message) > 1010 {
		t.Errorf("the condition has %d bytes", len(got.message))
	}
}

func TestOutcomeUnknown(t *testing.T) {
	timeout := &net.DNSError{IsTimeout: true}
	cases := map[string]struct {
		err  error
		want bool
	}{
		"refused by the system": {errors.New("quota exceeded"), false},
		"already exists":        {ErrAlreadyExists, false},
		"deadline":              {fmt.Errorf("post: %w", context.DeadlineExceeded), true},
		"canceled":              {context.Canceled, true},
		"end of the stream":     {io.ErrUnexpectedEOF, true},
		"reset":                 {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true},
		"never connected":       {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, false},
		"never connected, slow": {&net.OpError{Op: "dial", Err: context.DeadlineExceeded}, false},
		"timeout of the net":    {timeout, true},
		"said by the author":    {fmt.Errorf("502: %w", ErrOutcomeUnknown), true},
	}
	for name, tc := range cases {
		if got := outcomeUnknown(tc.err); got != tc.want {
			t.Errorf("%s: unknown is %v", name, got)
		}
	}
}

// Two long diffs with the same beginning are two diffs.
func TestClipDiff(t *testing.T) {
	one, two := strings.Repeat("ä", 2000)+"1", strings.Repeat("ä", 2000)+"2"
	if clipDiff(one) == clipDiff(two) {
		t.Error("long diffs are not told apart")
	}
	if got := len(clipDiff(one)); got > 1000 {
		t.Errorf("a diff has %d bytes", got)
	}
}

// A provider's own annotations are written; those that have a meaning for Crossplane or this package are not its own.
func TestAddFurther(t *testing.T) {
	c := changes{}
	c.addFurther(map[string]string{
		"upjet.crossplane.io/provider-meta": "{}", meta.AnnotationKeyExternalName: "x", meta.AnnotationKeyReconciliationPaused: "true", AnnotationBoundName: "x",
	})
	if len(c) != 1 || c["upjet.crossplane.io/provider-meta"] == nil {
		t.Errorf("annotations to write: %v", c)
	}
}

func TestDataOfARemovedObjectIsDropped(t *testing.T) {
	var removed []string
	c := connector[*fake.Managed, string, string]{
		resource: Resource[*fake.Managed, string, string]{Removed: func(o metav1.Object) { removed = append(removed, o.GetName()) }},
		drift:    newAnnouncer(nil, reasonDiffers), meter: newMeter("Test.example.org", nil),
	}
	mg := &fake.Managed{}
	mg.SetName("jane")
	c.dropData(mg)
	if len(removed) != 1 || removed[0] != "jane" {
		t.Errorf("Removed was called with %v", removed)
	}
}
