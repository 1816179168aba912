package crdmigrator_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
	"github.com/godwit-dev/godwit/test/howto"
)

// upgrade is one that skips releases, with CRDs that the project has released.
type upgrade struct {
	live, next           string   // modules
	liveFiles, nextFiles []string // CRDs below them, in the same order
	// stored is the version at which an earlier release stored the objects.
	stored string
	// converted means that a webhook converts, as the project's own does in a cluster.
	converted bool
	// injected means that an injector writes the CA bundle of the webhook, and that a server-side apply writes the rest of the CRD.
	injected bool
	// nextLacks is a version that the next release does not have, although the module has it: none without it is released
	// yet.
	nextLacks string
	objects   []string
	// steps are what the check says about the first CRD.
	steps string
}

var upgrades = map[string]upgrade{
	// v1.0.0 is not available as a module; v1.0.4 has the same versions.
	"cert-manager": {
		live: "github.com/jetstack/cert-manager@v1.0.4", next: "github.com/cert-manager/cert-manager@v1.15.0",
		liveFiles: []string{"deploy/crds/crd-issuers.yaml", "deploy/crds/crd-certificates.yaml", "deploy/crds/crd-clusterissuers.yaml", "deploy/crds/crd-orders.yaml"},
		nextFiles: []string{"deploy/crds/crd-issuers.yaml", "deploy/crds/crd-certificates.yaml", "deploy/crds/crd-clusterissuers.yaml", "deploy/crds/crd-orders.yaml"},
		stored:    "v1alpha2", converted: true, injected: true,
		objects: []string{
			"{apiVersion: cert-manager.io/v1alpha2, kind: Issuer, metadata: {name: self-signed, namespace: default}, spec: {selfSigned: {}}}",
			"{apiVersion: cert-manager.io/v1alpha2, kind: Certificate, metadata: {name: shop, namespace: default}, spec: {secretName: shop-tls, dnsNames: [shop.example.com], issuerRef: {name: self-signed}}}",
		},
		steps: "Migrate, Unserve, Remove, Unconvert, with objects stored at v1",
	},
	"Cluster API": {
		live: "sigs.k8s.io/cluster-api@v1.10.0", next: "sigs.k8s.io/cluster-api@v1.13.6",
		liveFiles: []string{"config/crd/bases/cluster.x-k8s.io_clusters.yaml", "config/crd/bases/cluster.x-k8s.io_machines.yaml"},
		nextFiles: []string{"config/crd/bases/cluster.x-k8s.io_clusters.yaml", "config/crd/bases/cluster.x-k8s.io_machines.yaml"},
		stored:    "v1alpha4", converted: true,
		objects: []string{"{apiVersion: cluster.x-k8s.io/v1alpha4, kind: Cluster, metadata: {name: edge, namespace: default}, spec: {paused: true}}"},
		steps:   "Serve, Migrate, Unserve, Remove, with objects stored at v1beta1",
	},
	"ToolHive": {
		live: "github.com/stacklok/toolhive@v0.47.0", next: "github.com/stacklok/toolhive@v0.47.0",
		liveFiles: []string{toolHiveCRDs + "mcpgroups.yaml", toolHiveCRDs + "mcpservers.yaml"},
		nextFiles: []string{toolHiveCRDs + "mcpgroups.yaml", toolHiveCRDs + "mcpservers.yaml"},
		stored:    "v1alpha1", nextLacks: "v1alpha1",
		objects: []string{"{apiVersion: toolhive.stacklok.dev/v1alpha1, kind: MCPGroup, metadata: {name: tools, namespace: default}, spec: {description: tools}}"},
		steps:   "Migrate, Unserve, Remove, with objects stored at v1beta1",
	},
}

const toolHiveCRDs = "deploy/charts/operator-crds/files/crds/toolhive.stacklok.dev_"

// released reads CRDs of a release, without what the release's installer renders.
func released(t *testing.T, module string, files []string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	dir, err := gomodule.Dir(t.Context(), module)
	if err != nil {
		t.Fatal(err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		crds, err := controlplane.DecodeCRDs(text)
		if err != nil || len(crds) != 1 {
			t.Fatalf("%s of %s has %d CRDs, want 1: %v", file, module, len(crds), err)
		}
		crds[0].Labels, crds[0].Annotations, crds[0].Spec.Conversion = nil, nil, nil
		all = append(all, crds[0])
	}
	return all
}

// install leaves the cluster as the releases of the project do: objects are stored at an old version, and the CRD stores
// another one.
func (u upgrade) install(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	config := shared.Config()
	crds := released(t, u.live, u.liveFiles)
	var conversion *apiextensionsv1.CustomResourceConversion
	if u.converted {
		c := &converter{}
		c.endpoint = newEndpoint(t, c)
		conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &c.url, CABundle: c.ca}, ConversionReviewVersions: []string{"v1"},
		}}
	}
	for _, crd := range crds {
		versions := crd.DeepCopy().Spec.Versions
		crd.Spec.Conversion = conversion
		for i := range crd.Spec.Versions {
			v := &crd.Spec.Versions[i]
			v.Storage = v.Name == u.stored
			v.Served = v.Served || v.Storage
		}
		w := &widgets{t: t, config: config, name: crd.Name}
		if u.injected {
			w.applyInjected(crd)
		} else if err := controlplane.InstallCRDs(t.Context(), config, crd); err != nil {
			t.Fatal(err)
		}
		for _, text := range u.objects {
			createObject(t, config, crd, text)
		}
		crd.Spec.Versions = versions
		_, err := controlplane.UpdateCRD(t.Context(), config, crd.Name, func(there *apiextensionsv1.CustomResourceDefinition) { there.Spec.Versions = versions })
		if err != nil {
			t.Fatal(err)
		}
	}
	return crds
}

// applyInjected creates a CRD by a server-side apply of kubectl, and has an injector write the CA bundle of its webhook.
func (w *widgets) applyInjected(crd *apiextensionsv1.CustomResourceDefinition) {
	w.t.Helper()
	manifest := crd.DeepCopy()
	manifest.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
	if err := w.applyAs("kubectl", manifest); err != nil {
		w.t.Fatal(err)
	}
	w.inject(crd.Spec.Conversion.Webhook.ClientConfig.CABundle)
	if err := controlplane.AwaitServed(w.t.Context(), w.config, w.name); err != nil {
		w.t.Fatal(err)
	}
}

func createObject(t *testing.T, config *rest.Config, crd *apiextensionsv1.CustomResourceDefinition, text string) {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	if o.GetKind() != crd.Spec.Names.Kind {
		return
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	resource := client.Resource(o.GroupVersionKind().GroupVersion().WithResource(crd.Spec.Names.Plural))
	if _, err := resource.Namespace(o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// nextRelease writes the CRDs of the next release to a file.
func (u upgrade) nextRelease(t *testing.T, file string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crds := released(t, u.next, u.nextFiles)
	var text []byte
	for _, crd := range crds {
		crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == u.nextLacks })
		document, err := yaml.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, "---\n"...), document...)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return crds
}

// reader is who follows a guide: a directory, and a shell with godwit and kubectl. The user may not read the leases of API
// servers, so that a run does not wait for their renewal.
func reader(t *testing.T) (dir string, env []string) {
	t.Helper()
	binary, err := buildGodwit()
	if err != nil {
		t.Fatal(err)
	}
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join("..", "..", "bin", "controlplane")
	}
	if assets, err = filepath.Abs(assets); err != nil {
		t.Fatal(err)
	}
	w := &widgets{t: t, plane: shared, group: groupOf(t)}
	_, config := w.user(permission{"*", crdsGroup, "*"}, permission{"*", "cert-manager.io", "*"}, permission{"*", "acme.cert-manager.io", "*"},
		permission{"*", "cluster.x-k8s.io", "*"}, permission{"*", "toolhive.stacklok.dev", "*"}, permission{"*", "example.com", "*"})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, config); err != nil {
		t.Fatal(err)
	}
	return t.TempDir(), []string{
		"PATH=" + filepath.Dir(binary) + string(os.PathListSeparator) + assets + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + t.TempDir(), "KUBECONFIG=" + kubeconfig, "RUN_FLAGS=--settle=0s",
	}
}

// TestSkipReleases plays upgrades over many releases, until the API server accepts the CRDs of the last.
func TestSkipReleases(t *testing.T) {
	t.Parallel()
	for name, u := range upgrades {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, env := reader(t)
			live := u.install(t)
			next := u.nextRelease(t, filepath.Join(dir, "next.yaml"))
			sh := func(want int, command string) string {
				t.Helper()
				c := exec.Command("sh", "-c", command)
				c.Dir, c.Env = dir, env
				out, err := c.CombinedOutput()
				if c.ProcessState.ExitCode() != want {
					t.Fatalf("%s: %v, want exit code %d\n%s", command, err, want, out)
				}
				return string(out)
			}
			apply := "kubectl apply --server-side --force-conflicts -f next.yaml"
			if out := sh(1, apply); !strings.Contains(out, "missing from spec.versions") {
				t.Fatalf("before the steps the API server answers %s", out)
			}
			if name == "cert-manager" { // as the guide says
				if _, err := howto.Run(t.Context(), howto.Guide{File: "../../docs/guides/skip-releases.md", Dir: dir, Env: env,
					Placeholders: map[string]string{"FILE": "next.yaml", "DIR": "steps"}}); err != nil {
					t.Fatal(err)
				}
			} else {
				out := sh(0, "godwit crd check -f next.yaml --steps=steps")
				if want := fmt.Sprintf("the next release of %s after the steps %s\n", next[0].Name, u.steps); !strings.Contains(out, want) {
					t.Errorf("want %s in\n%s", want, out)
				}
				sh(0, "sh steps/bridge.sh")
				sh(0, "sh steps/bridge.sh") // again
				sh(0, apply)
			}
			sh(0, "godwit crd check -f next.yaml")
			u.mustBeAtNext(t, live, next)
			before := generations(t, next)
			sh(0, "sh steps/bridge.sh") // again, after its end
			if after := generations(t, next); !maps.Equal(before, after) {
				t.Errorf("the script, run again after its end, changes CRDs: generations %v, before %v", after, before)
			}
		})
	}
}

// generations of CRDs change with each change of their spec.
func generations(t *testing.T, crds []*apiextensionsv1.CustomResourceDefinition) map[string]int64 {
	t.Helper()
	clients, err := clientset.NewForConfig(shared.Config())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for _, crd := range crds {
		got, err := clients.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), crd.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all[crd.Name] = got.Generation
	}
	return all
}

// mustBeAtNext: each object is there, stored at a version of the next release.
func (u upgrade) mustBeAtNext(t *testing.T, live, next []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	objects := 0
	for i, crd := range next {
		stored, err := shared.CountStored(t.Context(), crd.Spec.Group, crd.Spec.Names.Plural)
		if err != nil {
			t.Fatal(err)
		}
		for apiVersion, n := range stored {
			objects += n
			if !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
				return apiVersion == crd.Spec.Group+"/"+v.Name
			}) {
				t.Errorf("%d objects of %s are stored at %s", n, crd.Name, apiVersion)
			}
		}
		clients, err := clientset.NewForConfig(shared.Config())
		if err != nil {
			t.Fatal(err)
		}
		got, err := clients.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), crd.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if names(got) != names(crd) {
			t.Errorf("%s has %s, want %s; before it had %s", crd.Name, names(got), names(crd), names(live[i]))
		}
	}
	if objects != len(u.objects) {
		t.Errorf("%d objects are left, want %d", objects, len(u.objects))
	}
}

func names(crd *apiextensionsv1.CustomResourceDefinition) string {
	all := make([]string, len(crd.Spec.Versions))
	for i, v := range crd.Spec.Versions {
		all[i] = v.Name
	}
	text, _ := json.Marshal(all)
	return string(text)
}

// TestRescueGuide runs the guide on a CRD whose objects are unreadable.
func TestRescueGuide(t *testing.T) {
	t.Parallel()
	w := unreadable(t)
	before := w.state()
	_, env := reader(t)
	config := w.withoutLeases()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, config); err != nil {
		t.Fatal(err)
	}
	env = append(env, "KUBECONFIG="+kubeconfig)
	dir := t.TempDir()
	manifest := w.newCRD()
	manifest.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "old.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = howto.Run(t.Context(), howto.Guide{File: "../../docs/guides/rescue-a-crd.md", Dir: dir, Env: env, Placeholders: map[string]string{
		"CRD": w.name, "FILE": "old.yaml", "URL": shared.EtcdEndpoint(), "SETTLE": "0s",
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.mustBeRescued(before, 3)
}
