package externalname_test

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// upjetWorld is a namespace with a service and a provider that runs as a process.
type upjetWorld struct {
	t         *testing.T
	client    client.Client
	store     itemStore
	namespace string
	contract  bool
	programs  upjetPrograms
	provider  *exec.Cmd
}

func newUpjetWorld(t *testing.T, programs upjetPrograms, contract bool) *upjetWorld {
	t.Helper()
	c, err := client.New(shared.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "upjet-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	s, stop, err := startStore(t.Context(), programs.service)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop(context.WithoutCancel(t.Context())) })
	w := &upjetWorld{t: t, client: c, store: s, namespace: namespace.Name, contract: contract, programs: programs}
	w.start()
	t.Cleanup(w.stop)
	return w
}

func (w *upjetWorld) start() {
	w.t.Helper()
	kubeconfig := filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, shared.Config()); err != nil {
		w.t.Fatal(err)
	}
	w.provider = exec.Command(w.programs.provider, "--endpoint", w.store.url, "--namespace", w.namespace, "--poll", processPoll.String(),
		fmt.Sprintf("--contract=%v", w.contract))
	w.provider.Env = append(w.provider.Environ(), "KUBECONFIG="+kubeconfig)
	if err := w.provider.Start(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *upjetWorld) stop() {
	_ = w.provider.Process.Kill()
	_ = w.provider.Wait() // It was killed.
}

// bucket creates a managed resource for the bucket.
func (w *upjetWorld) bucket(object, bucket, externalName string) *unstructured.Unstructured {
	w.t.Helper()
	o := storeManifest("Bucket", map[string]any{"name": bucket})
	o.SetName(object)
	o.SetNamespace(w.namespace)
	if externalName != "" {
		meta.SetExternalName(o, externalName)
	}
	if err := w.client.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *upjetWorld) patch(o *unstructured.Unstructured, body string) {
	w.t.Helper()
	if err := w.client.Patch(w.t.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.t.Fatal(err)
	}
}

func (w *upjetWorld) rename(o *unstructured.Unstructured, name string) {
	w.t.Helper()
	w.patch(o, fmt.Sprintf(`{"metadata":{"annotations":{"crossplane.io/external-name":%q}}}`, name))
}

func (w *upjetWorld) pause(o *unstructured.Unstructured, paused string) {
	w.t.Helper()
	w.patch(o, fmt.Sprintf(`{"metadata":{"annotations":{"crossplane.io/paused":%q}}}`, paused))
}

// await waits until the object fits.
func (w *upjetWorld) await(o *unstructured.Unstructured, what string, fits func(name, observed string, synced bool) bool) {
	w.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(o.GroupVersionKind())
		if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(o), live); err != nil {
			w.t.Fatal(err)
		}
		observed, _, _ := unstructured.NestedString(live.Object, "status", "atProvider", "name")
		if fits(meta.GetExternalName(live), observed, syncedStatus(live)) {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("expected: %s; is: name %q, observed %q, %v", what, meta.GetExternalName(live), observed, live.Object["status"])
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// awaitPolls waits until a running provider has observed again.
func (w *upjetWorld) awaitPolls() { time.Sleep(4 * processPoll) }

func syncedStatus(o *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range conditions {
		if c, ok := one.(map[string]any); ok && c["type"] == "Synced" {
			return c["status"] == "True"
		}
	}
	return false
}

func (w *upjetWorld) awaitObserved(o *unstructured.Unstructured, name string) {
	w.t.Helper()
	w.await(o, "Synced with "+name, func(is, observed string, synced bool) bool { return is == name && observed == name && synced })
}

// plan returns the item of the only bucket.
func (w *upjetWorld) plan(upjet bool) fleet.Item {
	w.t.Helper()
	kind := fleet.Kind{
		Resource: schema.GroupVersionResource{Group: "store.example.org", Version: "v1alpha1", Resource: "buckets"}, Kind: "Bucket", Upjet: upjet,
	}
	f, err := fleet.New(shared.Config(), kind, fleet.Options{Scope: fleet.Scope{Namespace: w.namespace}})
	if err != nil {
		w.t.Fatal(err)
	}
	items, err := f.Plan(w.t.Context(), func(context.Context, *unstructured.Unstructured) (fleet.Proposal, error) {
		return fleet.Proposal{Name: "another"}, nil
	})
	if err != nil || len(items) != 1 {
		w.t.Fatalf("the plan has %v, %v", items, err)
	}
	return items[0]
}

const observeOnly = `{"spec":{"managementPolicies":["Observe"]}}`

// What docs/guides/upjet-provider.md says of renaming beside a provider that Upjet generates. Restarts happen under the policy
// Observe: under another one, a name that identifies nothing would create a second resource.
func TestUpjetRenaming(t *testing.T) {
	needsUpjet(t)
	installUpjetCRDs(t)
	programs := upjetExamplePrograms(t)

	t.Run("generated", func(t *testing.T) {
		w := newUpjetWorld(t, programs, false)
		for _, name := range []string{"old", "new"} {
			if err := w.store.send(t.Context(), http.MethodPost, "/buckets", storeItem{Name: name}, nil); err != nil {
				t.Fatal(err)
			}
		}
		o := w.bucket("one", "old", "old")
		w.awaitObserved(o, "old")
		if item := w.plan(false); item.Reason != fleet.ReasonUpjet {
			t.Errorf("the plan of a generated, synchronous provider has %+v", item)
		}
		w.rename(o, "new") // A running provider has the Terraform state in memory, and writes the old name back.
		w.awaitObserved(o, "old")

		w.patch(o, observeOnly) // Without LateInitialize it does not even write it back.
		w.rename(o, "new")
		ignored := func(name, observed string, synced bool) bool { return name == "new" && observed == "old" && synced }
		w.awaitPolls()
		w.await(o, "Synced with the old resource under the new name", ignored)

		w.pause(o, "true") // A pause changes nothing.
		w.awaitPolls()
		w.pause(o, "false")
		w.awaitPolls()
		w.await(o, "Synced with the old resource under the new name", ignored)

		w.stop() // A restart does.
		w.start()
		w.awaitObserved(o, "new")

		w.stop() // Under Observe, a name of nothing is an error.
		w.rename(o, "nothing")
		w.start()
		w.await(o, "not Synced", func(name, _ string, synced bool) bool { return name == "nothing" && !synced })

		again := w.bucket("again", "new", "new") // A new object has no Terraform state.
		w.awaitObserved(again, "new")
		if items, err := w.store.list(t.Context(), "buckets"); err != nil || len(items) != 2 {
			t.Errorf("external resources: %v, %v", items, err)
		}
	})

	t.Run("contract", func(t *testing.T) {
		w := newUpjetWorld(t, programs, true)
		for _, name := range []string{"old", "new"} {
			if err := w.store.send(t.Context(), http.MethodPost, "/buckets", storeItem{Name: name}, nil); err != nil {
				t.Fatal(err)
			}
		}
		o := w.bucket("one", "old", "old")
		w.awaitObserved(o, "old")
		if item := w.plan(true); item.Reason == fleet.ReasonUpjet || item.Action != fleet.Rename {
			t.Errorf("the plan of a provider that follows the contract has %+v", item)
		}
		w.patch(o, observeOnly)
		w.rename(o, "new") // The next observation reads the new name.
		w.awaitObserved(o, "new")
		w.rename(o, "nothing")
		w.await(o, "not Synced", func(name, _ string, synced bool) bool { return name == "nothing" && !synced })
	})
}

func installUpjetCRDs(t *testing.T) {
	t.Helper()
	var list []*apiextensionsv1.CustomResourceDefinition
	for _, o := range upjetCRDs(t) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, crd); err != nil {
			t.Fatal(err)
		}
		if !fleet.UpjetCRD(crd) {
			t.Errorf("CRD %s is not recognized as one of Upjet", crd.Name)
		}
		list = append(list, crd)
	}
	if err := controlplane.InstallCRDs(t.Context(), shared.Config(), list...); err != nil {
		t.Fatal(err)
	}
}
