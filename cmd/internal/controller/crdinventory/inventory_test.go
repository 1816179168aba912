package crdinventory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/api/v1alpha1"
)

// server is an API server with CRDs that answers lists in pages, and counts requests for CRDs.
type server struct {
	client.WithWatch
	lists, gets int
	broken      error
}

func newServer(t *testing.T, objects ...client.Object) *server {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	s := &server{}
	s.WithWatch = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*apiextensionsv1.CustomResourceDefinition); is {
				s.gets++
			}
			return to.Get(ctx, key, o, opts...)
		},
		List: s.page,
	})
	return s
}

// page answers with the CRDs after those that the continue token counts. The fake client has no pages.
func (s *server) page(ctx context.Context, to client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	s.lists++
	if s.broken != nil {
		return s.broken
	}
	if err := to.List(ctx, list); err != nil {
		return err
	}
	crds, is := list.(*apiextensionsv1.CustomResourceDefinitionList)
	if !is {
		return nil
	}
	o := (&client.ListOptions{}).ApplyOptions(opts)
	from := 0
	if _, err := fmt.Sscan(o.Continue, &from); o.Continue != "" && err != nil {
		return err
	}
	end := from + int(o.Limit)
	if end < len(crds.Items) {
		crds.Continue = fmt.Sprint(end)
	}
	crds.Items = crds.Items[from:min(end, len(crds.Items))]
	return nil
}

func crd(name string, stored ...string) *apiextensionsv1.CustomResourceDefinition {
	c := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v2", Storage: true}}
	c.Status.StoredVersions = stored
	return c
}

// TestInventory follows CRDs: listed once, then read one by one as they change.
func TestInventory(t *testing.T) {
	chosen, other, migrated := crd("chosen.example.com", "v1", "v2"), crd("other.example.com", "v1alpha1", "v1", "v2"), crd("migrated.example.com", "v1", "v2")
	objects := []client.Object{chosen, other, migrated, &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: migrated.Name}}}
	for i := range 2*pageCRDs + 1 {
		objects = append(objects, crd(fmt.Sprintf("clean%d.example.com", i), "v2"))
	}
	s := newServer(t, objects...)
	r := &Reconciler{Client: s, Reader: s, InScope: func(o metav1.Object) bool { return strings.HasPrefix(o.GetName(), "chosen") }}
	registry := prometheus.NewPedanticRegistry()
	if err := NewMetrics(r).Register(registry); err != nil {
		t.Fatal(err)
	}
	see := func(name string) error {
		_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
		return err
	}
	must := func(when string, want ...string) {
		t.Helper()
		if got := series(t, registry); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	must("before the list: unknown is not zero")
	s.broken = errors.New("the API server does not answer")
	if err := see(chosen.Name); !errors.Is(err, s.broken) {
		t.Errorf("a list that failed ended with %v", err)
	}
	must("after a list that failed")
	s.broken, s.lists = nil, 0
	for _, o := range objects {
		if err := see(o.GetName()); err != nil {
			t.Fatal(err)
		}
	}
	if s.lists != 3 || s.gets != 0 {
		t.Errorf("%d lists and %d reads of a CRD, want 3 pages and no more", s.lists, s.gets)
	}
	must("after the list",
		`godwit_crd_old_versions{chosen.example.com,true} 1`, `godwit_crd_old_versions{migrated.example.com,true} 1`, `godwit_crd_old_versions{other.example.com,false} 2`,
		`godwit_crds{false,false} 51`, `godwit_crds{false,true} 1`, `godwit_crds{true,false} 0`, `godwit_crds{true,true} 2`)

	trimmed := &apiextensionsv1.CustomResourceDefinition{}
	if err := s.WithWatch.Get(t.Context(), client.ObjectKeyFromObject(chosen), trimmed); err != nil {
		t.Fatal(err)
	}
	trimmed.Status.StoredVersions = []string{"v2"}
	s.gets = 0
	if err := errors.Join(s.Status().Update(t.Context(), trimmed), s.Delete(t.Context(), other), see(chosen.Name), see(other.Name)); err != nil {
		t.Fatal(err)
	}
	if s.lists != 3 || s.gets != 1 {
		t.Errorf("%d lists and %d reads of a CRD, want one read more", s.lists, s.gets)
	}
	must("after a trim and a deletion", `godwit_crd_old_versions{migrated.example.com,true} 1`,
		`godwit_crds{false,false} 51`, `godwit_crds{false,true} 0`, `godwit_crds{true,false} 1`, `godwit_crds{true,true} 1`)
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %+v, %v", problems, err)
	}
}

// series are name{values} value, in order.
func series(t *testing.T, registry *prometheus.Registry) (all []string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			all = append(all, fmt.Sprintf("%s{%s} %v", f.GetName(), strings.Join(values, ","), m.GetGauge().GetValue()))
		}
	}
	return all
}
