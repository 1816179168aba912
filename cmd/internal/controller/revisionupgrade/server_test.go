package revisionupgrade

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/godwit-dev/godwit/api/v1alpha1"
)

// fakeServer is an API server that counts requests.
type fakeServer struct {
	client.WithWatch
	recorder       *events.FakeRecorder
	reads, patches int
}

func newFakeServer(t *testing.T, objects ...client.Object) *fakeServer {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		o.SetManagedFields(nil) // the fake client writes its own
	}
	s := &fakeServer{recorder: events.NewFakeRecorder(10)}
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(objects...).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				s.reads++
				return c.Get(ctx, key, o, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				s.patches++
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	return s
}

// upgrades is the reconciler of this server.
func (s *fakeServer) upgrades() *Upgrades {
	return &Upgrades{Client: s, Reader: s, Recorder: s.recorder}
}

// upgrade reads an upgrade, uncounted.
func (s *fakeServer) upgrade(t *testing.T, of *v1alpha1.ControllerRevisionUpgrade) *v1alpha1.ControllerRevisionUpgrade {
	t.Helper()
	got := &v1alpha1.ControllerRevisionUpgrade{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(of), got); err != nil {
		t.Fatal(err)
	}
	s.reads--
	return got
}
