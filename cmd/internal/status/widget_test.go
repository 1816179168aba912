package status_test

import (
	"context"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// widget is an object of no domain.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            widgetStatus `json:"status"`
}

type widgetStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Progress           int                `json:"progress,omitempty"`
	Checkpoint         string             `json:"checkpoint,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

func (w *widget) Conditions() *[]metav1.Condition { return &w.Status.Conditions }
func (w *widget) ObservedGeneration() *int64      { return &w.Status.ObservedGeneration }

func (w *widget) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = append([]metav1.Condition(nil), w.Status.Conditions...)
	return &out
}

func newWidget() *widget {
	return &widget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "widget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "first", Generation: 1},
	}
}

// server is an API server with widgets. It counts the patches of statuses.
type server struct {
	client.WithWatch
	patches atomic.Int64
	// beforePatch runs before the next patch, as another client does.
	beforePatch func()
}

func newServer(t *testing.T, objects ...client.Object) *server {
	t.Helper()
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme.AddKnownTypes(version, &widget{})
	metav1.AddToGroupVersion(scheme, version)
	s := &server{}
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&widget{}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				if s.beforePatch != nil {
					before := s.beforePatch
					s.beforePatch = nil
					before()
				}
				s.patches.Add(1)
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	return s
}

func (s *server) read(t *testing.T) *widget {
	t.Helper()
	w := &widget{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "a"}, w); err != nil {
		t.Fatal(err)
	}
	return w
}
