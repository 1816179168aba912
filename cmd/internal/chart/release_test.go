package chart_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	hubapi "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/format/formattest"
	"github.com/godwit-dev/godwit/test/howto"
)

// freeze makes the chart as it is now the one of v0.1.0, which is not released yet.
var freeze = flag.Bool("freeze", false, "copy values and CRDs of the chart to test/state")

// frozenChart has the values and the CRDs of the chart of the oldest release whose state is read.
const frozenChart = root + "/test/state/" + formattest.Oldest + "/chart"

// olderChart writes the chart of v0.1.0: its values and its CRDs, which have an annotation that the next release does not have.
func olderChart(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(scratch(t), "older", "godwit")
	if err := os.CopyFS(dir, os.DirFS(chartDir)); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	values, err := os.ReadFile(filepath.Join(frozenChart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "values.yaml"), values, 0o600); err != nil {
		t.Fatal(err)
	}
	crds, err := filepath.Glob(filepath.Join(frozenChart, "crds", "*.yaml"))
	if err != nil || len(crds) < 4 {
		t.Fatalf("%d CRDs: %v", len(crds), err)
	}
	for _, file := range crds {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		old := strings.Replace(string(text), "  annotations:\n", "  annotations:\n    example.com/release: older\n", 1)
		if err := os.WriteFile(filepath.Join(dir, "files", "crds", filepath.Base(file)), []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestValuesOfOlderRelease: the defaults of v0.1.0 are values that this chart accepts, and enough for its templates: with
// --reuse-values, Helm renders them in place of the chart's own. The objects are those of the chart's own defaults.
func TestValuesOfOlderRelease(t *testing.T) {
	values := filepath.Join(frozenChart, "values.yaml")
	if *freeze {
		if err := os.RemoveAll(frozenChart); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(frozenChart, "crds"), os.DirFS(chartDir+"/files/crds")); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(chartDir + "/values.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(values, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := decode(t, mustHelm(t, "template", "godwit", chartDir, "--namespace=godwit"))
	given := decode(t, mustHelm(t, "template", "godwit", chartDir, "--namespace=godwit", "--values="+values))
	if diff := cmp.Diff(now, given); diff != "" {
		t.Errorf("with the defaults of v0.1.0 as values (-defaults +given):\n%s", diff)
	}
	reused := filepath.Join(scratch(t), "reused", "godwit")
	if err := os.CopyFS(reused, os.DirFS(chartDir)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(values)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(reused, "values.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	mustHelm(t, "template", "godwit", reused, "--namespace=godwit")
	mustHelm(t, "template", "godwit", reused, "--namespace=godwit", everything)
}

// published is the chart of the newest release, which the guides install.
const published = "oci://ghcr.io/godwit-dev/charts/godwit"

// playGuides installs v0.1.0 with objects in the middle of their work, and does what the guides say.
func (c *cluster) playGuides(kubeconfig string) {
	t := c.t
	t.Helper()
	stop, err := c.plane.StartControllerManager(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stop() }()
	older := olderChart(t)
	flags := []string{"--kubeconfig=" + kubeconfig, "--namespace=godwit"}
	install := slices.Concat(flags, []string{
		"install", "godwit", older, "--create-namespace",
		"--set=operator.features.clusterMigration=true,operator.features.revisionUpgrader=true", "--set=clusterMigration.kafka.brokers={kafka.example.com:9092}",
	})
	// The CRDs are there, of a release in another namespace that was uninstalled. The guide to the manager has the error and the flag.
	if _, err := helm(t, install...); err == nil || !strings.Contains(err.Error(), "exists and cannot be imported into the current release") {
		t.Errorf("install over the CRDs of another release: %v, want an error that the guide explains", err)
	}
	mustHelm(t, append(install, "--take-ownership")...)
	c.mustHaveCRDs(4, "older")
	if out, err := godwit(t, kubeconfig, "crd", "check", "--filename="+chartDir+"/files/crds"); err != nil {
		t.Errorf("objects of v0.1.0 don't survive the CRDs of this release: %v\n%s", err, out)
	}
	c.beginWork()
	mustHelm(t, append(flags, "upgrade", "godwit", chartDir, "--reuse-values")...)
	c.mustHaveCRDs(4, "")
	mustHelm(t, append(flags, "rollback", "godwit", "1")...)
	c.mustHaveCRDs(4, "older")

	dir, env := c.reader(kubeconfig)
	c.mustRun(howto.Guide{File: root + "/docs/guides/upgrade-godwit.md", Dir: dir, Env: env, Placeholders: map[string]string{published: "charts/godwit"}}, 3)
	c.mustHaveCheckpoint()
	c.mustRun(howto.Guide{File: root + "/docs/guides/uninstall.md", Dir: dir, Env: env, Placeholders: map[string]string{"NAMESPACE": "clusters", "NAME": "move"}}, 9)
	c.mustBeUninstalled()
}

func (c *cluster) mustRun(g howto.Guide, least int) {
	c.t.Helper()
	if commands, err := howto.Run(c.t.Context(), g); err != nil || commands < least {
		c.t.Fatalf("%d commands of %s: %v", commands, filepath.Base(g.File), err)
	}
}

// ownCRDs are those of the kinds of Godwit.
func (c *cluster) ownCRDs() []apiextensionsv1.CustomResourceDefinition {
	c.t.Helper()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := c.List(c.t.Context(), list); err != nil {
		c.t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(crd apiextensionsv1.CustomResourceDefinition) bool {
		return crd.Spec.Group != v1alpha1.GroupVersion.Group && crd.Name != hubapi.CRDName
	})
}

// mustHaveCRDs checks which chart the CRDs are of.
func (c *cluster) mustHaveCRDs(n int, release string) {
	c.t.Helper()
	crds := c.ownCRDs()
	for _, crd := range crds {
		if got := crd.Annotations["example.com/release"]; got != release {
			c.t.Errorf("%s is of release %q, want %q", crd.Name, got, release)
		}
	}
	if len(crds) != n {
		c.t.Errorf("%d CRDs, want %d", len(crds), n)
	}
}

// beginWork creates what a manager, an agent and commands of v0.1.0 leave when they are killed.
func (c *cluster) beginWork() {
	t := c.t
	t.Helper()
	create := func(o client.Object) {
		t.Helper()
		await(t, "the API server to accept "+o.GetName(), func() bool { return client.IgnoreAlreadyExists(c.Create(t.Context(), o)) == nil })
	}
	var checkpoint v1alpha1.Checkpoint
	if err := yaml.UnmarshalStrict([]byte(formattest.Frozen(t, "checkpoint.json")), &checkpoint); err != nil {
		t.Fatal(err)
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters"}})
	m := &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: "one.example.com"}}
	create(m)
	m.Status.Checkpoint = &checkpoint
	if err := c.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	trigger := &v1alpha1.ControllerRevisionUpgradeTrigger{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
	create(trigger)
	owner := *metav1.NewControllerRef(trigger, v1alpha1.GroupVersion.WithKind("ControllerRevisionUpgradeTrigger"))
	create(&v1alpha1.ControllerRevisionUpgrade{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "vm-one", OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:       v1alpha1.ControllerRevisionUpgradeSpec{TargetName: "vm-one"},
	})
	move := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"from": "hub1", "to": "hub2", "includedManagedClusters": []any{"c1"}}}}
	move.SetGroupVersionKind(hubapi.GroupVersion.WithKind("ManagedClusterMigration"))
	move.SetNamespace("clusters")
	move.SetName("move")
	move.SetFinalizers([]string{hubapi.Finalizer})
	create(move)
	create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "godwit", Name: "godwit-storage-version-migrator"}})
	create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "godwit", Name: "godwit-hub-identity"}})
	create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "godwit-resource-run"}})
}

func (c *cluster) mustHaveCheckpoint() {
	c.t.Helper()
	m := &v1alpha1.CRDMigration{}
	err := c.Get(c.t.Context(), client.ObjectKey{Name: "one.example.com"}, m)
	if err != nil || m.Status.Checkpoint == nil || m.Status.Checkpoint.Cursor != "default/o-039" {
		c.t.Errorf("upgrades and rollbacks have changed the checkpoint: %+v, %v", m.Status.Checkpoint, err)
	}
}

// reader is in a clone of the repository, with the programs that the guides use.
func (c *cluster) reader(kubeconfig string) (dir string, env []string) {
	t := c.t
	t.Helper()
	dir, bin := t.TempDir(), t.TempDir()
	link := func(target, name string) {
		t.Helper()
		there, err := filepath.Abs(target)
		if err == nil {
			err = os.Symlink(there, name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"api", "charts"} {
		link(filepath.Join(root, folder), filepath.Join(dir, folder))
	}
	helm, err := helmPath()
	if err != nil {
		t.Fatal(err)
	}
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join(root, "bin", "controlplane")
	}
	link(helm, filepath.Join(bin, "helm"))
	link(filepath.Join(assets, "kubectl"), filepath.Join(bin, "kubectl"))
	return dir, []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "KUBECONFIG=" + kubeconfig}
}

// mustBeUninstalled finds what is left in the cluster.
func (c *cluster) mustBeUninstalled() {
	c.t.Helper()
	if crds := c.ownCRDs(); len(crds) > 0 {
		c.t.Errorf("%d CRDs are left", len(crds))
	}
	if err := c.Get(c.t.Context(), client.ObjectKey{Name: "godwit"}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		c.t.Errorf("the namespace is left: %v", err)
	}
	err := c.Get(c.t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "godwit-resource-run"}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		c.t.Errorf("the journal is left: %v", err)
	}
	for _, kind := range []schema.GroupVersionKind{
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(c.t.Context(), list); err != nil {
			c.t.Fatal(err)
		}
		for _, o := range list.Items {
			if strings.HasPrefix(o.GetName(), "godwit") {
				c.t.Errorf("%s is left", name(&o))
			}
		}
	}
}
