package config_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/upjet/v2/pkg/controller"
	upjet "github.com/crossplane/upjet/v2/pkg/terraform"
	tfsdk "github.com/hashicorp/terraform-plugin-sdk/v2/terraform"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/examples/provider-upjet/apis/store/v1alpha1"
	"github.com/godwit-dev/godwit/examples/provider-upjet/config"
	"github.com/godwit-dev/godwit/examples/provider-upjet/service"
	"github.com/godwit-dev/godwit/examples/provider-upjet/terraform"
	"github.com/godwit-dev/godwit/externalname"
)

// world is a service and Upjet's connectors for it.
type world struct {
	service.Service
	requests atomic.Int64
	connect  func(terraformName string, mg resource.Managed) (managed.ExternalClient, error)
	// restart has the connectors forget the Terraform states.
	restart func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	handler := w.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.requests.Add(1)
		handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	provider, err := config.Provider()
	if err != nil {
		t.Fatal(err)
	}
	setup := func(ctx context.Context, _ client.Client, _ resource.Managed) (upjet.Setup, error) {
		p := terraform.Provider()
		p.Configure(ctx, tfsdk.NewResourceConfigRaw(map[string]any{"endpoint": server.URL}))
		return upjet.Setup{Meta: p.Meta()}, nil
	}
	var store *controller.OperationTrackerStore
	w.restart = func() { store = controller.NewOperationStore(logging.NewNopLogger()) }
	w.restart()
	w.connect = func(name string, mg resource.Managed) (managed.ExternalClient, error) {
		return controller.NewTerraformPluginSDKConnector(nil, setup, provider.Resources[name], store,
			controller.WithTerraformPluginSDKLogger(logging.NewNopLogger()),
			controller.WithTerraformPluginSDKManagementPolicies(true)).Connect(t.Context(), mg)
	}
	return w
}

// observe connects and observes.
func (w *world) observe(t *testing.T, name string, mg resource.Managed) (managed.ExternalClient, managed.ExternalObservation) {
	t.Helper()
	c, err := w.connect(name, mg)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	o, err := c.Observe(t.Context(), mg)
	if err != nil {
		t.Fatalf("observe: %v", err)
	}
	return c, o
}

func bucket(name, externalName string) *v1alpha1.Bucket {
	b := &v1alpha1.Bucket{}
	b.SetName("my-bucket")
	b.SetUID(types.UID("bucket"))
	b.SetManagementPolicies(append(b.GetManagementPolicies(), "*"))
	b.Spec.ForProvider.Name = &name
	if externalName != "" {
		meta.SetExternalName(b, externalName)
	}
	return b
}

func folder(name, externalName string) *v1alpha1.Folder {
	parent := "eu"
	f := &v1alpha1.Folder{}
	f.SetName("my-folder")
	f.SetUID(types.UID("folder"))
	f.SetManagementPolicies(append(f.GetManagementPolicies(), "*"))
	f.Spec.ForProvider.Bucket, f.Spec.ForProvider.Name = &parent, &name
	if externalName != "" {
		meta.SetExternalName(f, externalName)
	}
	return f
}

// Upjet asks for the Terraform ID of a new resource, which has no name.
func TestNewResourceIsCreated(t *testing.T) {
	w := newWorld(t)
	w.Add(service.Buckets, service.Item{Name: "eu"})
	for name, tc := range map[string]struct {
		mg   resource.Managed
		want string
	}{
		"store_bucket": {bucket("a/b", ""), "a%2Fb"},
		"store_folder": {folder("docs", ""), "eu/docs"},
	} {
		c, o := w.observe(t, name, tc.mg)
		if o.ResourceExists {
			t.Fatalf("%s exists before it is created", name)
		}
		if _, err := c.Create(t.Context(), tc.mg); err != nil {
			t.Fatalf("create %s: %v", name, err)
		}
		if got := meta.GetExternalName(tc.mg); got != tc.want {
			t.Errorf("%s has the external name %q, want %q", name, got, tc.want)
		}
		w.restart()
		if _, o := w.observe(t, name, tc.mg); !o.ResourceExists || !o.ResourceUpToDate {
			t.Errorf("%s is observed by its name as %+v", name, o)
		}
	}
	volume := &v1alpha1.Volume{}
	volume.SetUID("volume")
	c, _ := w.observe(t, "store_volume", volume)
	if _, err := c.Create(t.Context(), volume); err != nil {
		t.Fatalf("create a volume: %v", err)
	}
	if _, err := externalname.GUID().Parse(meta.GetExternalName(volume)); err != nil {
		t.Errorf("the external name of a volume: %v", err)
	}
}

func TestLegacyNameIsReplaced(t *testing.T) {
	for _, legacy := range []string{"docs", " eu/docs", "eu/docs"} {
		w := newWorld(t)
		w.Add(service.Buckets, service.Item{Name: "eu"})
		w.Add(service.Folders, service.Item{Bucket: "eu", Name: "docs"})
		f := folder("docs", legacy)
		_, o := w.observe(t, "store_folder", f)
		if got := meta.GetExternalName(f); !o.ResourceExists || got != "eu/docs" || o.ResourceLateInitialized != (legacy != got) {
			t.Errorf("name %q: %+v, and the name is %q", legacy, o, got)
		}
	}
}

// What can't be a name is refused before a request.
func TestMalformedNames(t *testing.T) {
	w := newWorld(t)
	for name, mg := range map[string]resource.Managed{
		"store_bucket": bucket("..", ""),
		"store_folder": folder("docs", "eu/docs/surplus"),
	} {
		_, err := w.connect(name, mg)
		var invalid *externalname.InvalidError
		if !errors.As(err, &invalid) && (err == nil || !strings.Contains(err.Error(), "external name")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := w.requests.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// A running provider remembers the Terraform state: it ignores a changed annotation, and writes the old one back.
func TestRunningUpjetIgnoresAChangedName(t *testing.T) {
	w := newWorld(t)
	w.Add(service.Buckets, service.Item{Name: "old"})
	w.Add(service.Buckets, service.Item{Name: "new"})
	b := bucket("old", "old")
	w.observe(t, "store_bucket", b)
	meta.SetExternalName(b, "new")
	if _, o := w.observe(t, "store_bucket", b); meta.GetExternalName(b) != "old" || !o.ResourceLateInitialized {
		t.Errorf("the name is %q, %+v", meta.GetExternalName(b), o)
	}
	meta.SetExternalName(b, "new")
	w.restart()
	if w.observe(t, "store_bucket", b); meta.GetExternalName(b) != "new" {
		t.Errorf("after a restart, the name is %q", meta.GetExternalName(b))
	}
}
