package controlplane_test

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// Two documents, as in a project's release manifest: one of another kind, which is skipped.
const widgets = `
apiVersion: v1
kind: Namespace
metadata: {name: widgets}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.godwit.dev}
spec:
  group: test.godwit.dev
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - {name: v1alpha1, served: true, storage: true, schema: &anything {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1, served: false, storage: false, schema: *anything}
`

// widgetCount is more than one page of CountStored, and not a multiple of it.
const widgetCount = 1003

func TestCRDLifecycle(t *testing.T) {
	crds, err := controlplane.DecodeCRDs([]byte(widgets))
	if err != nil {
		t.Fatal(err)
	}
	if len(crds) != 1 {
		t.Fatalf("decoded %d CRDs, want 1", len(crds))
	}
	if err := controlplane.InstallCRDs(t.Context(), shared.Config(), crds...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteCRD(t, crds[0].Name) })
	client, err := dynamic.NewForConfig(shared.Config())
	if err != nil {
		t.Fatal(err)
	}
	at := func(version string) dynamic.ResourceInterface {
		return client.Resource(schema.GroupVersionResource{Group: "test.godwit.dev", Version: version, Resource: "widgets"}).Namespace("default")
	}
	for i := range widgetCount {
		widget := &unstructured.Unstructured{}
		widget.SetAPIVersion("test.godwit.dev/v1alpha1")
		widget.SetKind("Widget")
		widget.SetName("w" + strconv.Itoa(i))
		if _, err := at("v1alpha1").Create(t.Context(), widget, metav1.CreateOptions{}); err != nil {
			t.Fatalf("create through an installed CRD: %v", err)
		}
	}
	expectStored(t, map[string]int{"test.godwit.dev/v1alpha1": widgetCount})

	setVersions(t, func(versions []apiextensionsv1.CustomResourceDefinitionVersion) { versions[1].Served = true })
	if _, err := at("v1").Get(t.Context(), "w0", metav1.GetOptions{}); err != nil {
		t.Errorf("read at the new version: %v", err)
	}
	setVersions(t, func(versions []apiextensionsv1.CustomResourceDefinitionVersion) {
		versions[0].Storage, versions[1].Storage = false, true
	})
	// An empty patch writes only once the server has adopted the storage version.
	eventually(t, "the storage version to be adopted", func() bool {
		if _, err := at("v1").Patch(t.Context(), "w0", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		version, err := shared.StoredAt(t.Context(), "test.godwit.dev", "widgets", "default", "w0")
		return err == nil && version == "test.godwit.dev/v1"
	})
	expectStored(t, map[string]int{"test.godwit.dev/v1alpha1": widgetCount - 1, "test.godwit.dev/v1": 1})
	if version, err := shared.StoredAt(t.Context(), "test.godwit.dev", "widgets", "default", "no-such-widget"); err == nil {
		t.Errorf("an object that does not exist is at %s, want an error", version)
	}

	setVersions(t, func(versions []apiextensionsv1.CustomResourceDefinitionVersion) { versions[0].Served = false })
	if _, err := at("v1alpha1").Get(t.Context(), "w0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("read at the version that is not served: %v, want NotFound", err)
	}
}

func setVersions(t *testing.T, change func([]apiextensionsv1.CustomResourceDefinitionVersion)) {
	t.Helper()
	updated, err := controlplane.UpdateCRD(t.Context(), shared.Config(), "widgets.test.godwit.dev",
		func(crd *apiextensionsv1.CustomResourceDefinition) { change(crd.Spec.Versions) })
	if err != nil {
		t.Fatal(err)
	}
	if updated.Generation < 2 {
		t.Errorf("updated CRD has generation %d", updated.Generation)
	}
}

// TestAwaitServedReportsWhatIsMissing: the wait for a CRD that is never served ends at the caller's deadline, with the
// reason.
func TestAwaitServedReportsWhatIsMissing(t *testing.T) {
	// The groups are new in each run, and the CRDs stay: the API server can forget the deletion of a CRD whose objects no
	// request has read, and comes back to it after up to five minutes.
	claims, names := rand.String(5)+".claimed.godwit.dev", rand.String(5)+".names.godwit.dev"
	claimed, original, impostor := newCRD(t, claims, "claims"), newCRD(t, names, "originals"), newCRD(t, names, "impostors")
	claimVersion(t, claims, "v1alpha1")
	if err := controlplane.InstallCRDs(t.Context(), shared.Config(), original); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		crd          *apiextensionsv1.CustomResourceDefinition
		want, reason string
	}{
		"kind taken": {
			crd: impostor, want: "names are not accepted",
			reason: "both have the kind Widget, and the second is never established",
		},
		"version claimed": {
			crd: claimed, want: "discovery shows versions []",
			reason: "the CRD is established, but requests for its version go to another server",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			err := controlplane.InstallCRDs(ctx, shared.Config(), test.crd)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("AwaitServed: %v, want a timeout with %q: %s", err, test.want, test.reason)
			}
		})
	}
}

func newCRD(t *testing.T, group, plural string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crds, err := controlplane.DecodeCRDs([]byte(widgets))
	if err != nil {
		t.Fatal(err)
	}
	crd := crds[0]
	crd.Name, crd.Spec.Group, crd.Spec.Names.Plural = plural+"."+group, group, plural
	return crd
}

// claimVersion registers an aggregated API server, which does not exist, for the version.
func claimVersion(t *testing.T, group, version string) {
	t.Helper()
	client, err := dynamic.NewForConfig(shared.Config())
	if err != nil {
		t.Fatal(err)
	}
	services := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1",
		"kind":       "APIService",
		"metadata":   map[string]any{"name": version + "." + group},
		"spec": map[string]any{
			"group": group, "version": version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "default", "name": "missing"},
		},
	}}
	if _, err := services.Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := services.Delete(context.Background(), claim.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// deleteCRD lets the test run again on the same control plane. The end of a test is also that of its context.
func deleteCRD(t *testing.T, name string) {
	t.Helper()
	clients, err := clientset.NewForConfig(shared.Config())
	if err != nil {
		t.Fatal(err)
	}
	crds := clients.ApiextensionsV1().CustomResourceDefinitions()
	if err := crds.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the CRD", func() bool {
		_, err := crds.Get(context.Background(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func expectStored(t *testing.T, want map[string]int) {
	t.Helper()
	got, err := shared.CountStored(t.Context(), "test.godwit.dev", "widgets")
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Errorf("stored in etcd (-want +got):\n%s", cmp.Diff(want, got))
	}
}

func TestDecodeCRDsRefuses(t *testing.T) {
	for name, test := range map[string]struct{ file, reason string }{
		"unknown field": {
			file:   "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {versoins: []}",
			reason: "the decoder would drop a misspelt field without an error",
		},
		"no YAML": {file: "a: [", reason: "a truncated file is an error"},
	} {
		t.Run(name, func(t *testing.T) {
			if crds, err := controlplane.DecodeCRDs([]byte(test.file)); err == nil {
				t.Errorf("decoded %d CRDs: %s", len(crds), test.reason)
			}
		})
	}
}
