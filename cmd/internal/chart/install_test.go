package chart_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// everything that can be switched on is on in these values.
const everything = "--values=testdata/everything.values.yaml"

// TestHelmInstallsUpgradesAndUninstalls a release; its kinds and their objects stay. Other tests apply the same objects
// without Helm, which takes over none, so that it has a control plane of its own.
func TestHelmInstallsUpgradesAndUninstalls(t *testing.T) {
	plane, err := newPlane(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := clusterOf(t, plane)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, c.cfg); err != nil {
		t.Fatal(err)
	}
	release := []string{"--namespace=lifecycle", "--kubeconfig=" + kubeconfig}
	deployment := func() error {
		return c.Get(t.Context(), client.ObjectKey{Namespace: "lifecycle", Name: "godwit-storage-version-migrator"}, &appsv1.Deployment{})
	}

	out := mustHelm(t, append(release, "install", "godwit", chartDir, "--create-namespace", everything)...)
	if !strings.Contains(out, "The storage version migrator is installed.") {
		t.Errorf("no notes in\n%s", out)
	}
	if err := deployment(); err != nil {
		t.Error(err)
	}

	mustHelm(t, append(release, "upgrade", "godwit", chartDir, "--reuse-values", "--set=storageVersionMigrator.rbac.groups={later.example.com}")...)
	role := &rbacv1.ClusterRole{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "godwit-storage-version-migrator"}, role); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, "later.example.com") }) {
		t.Errorf("a group that was named later is not in the role: %v", role.Rules)
	}

	mustHelm(t, append(release, "upgrade", "godwit", chartDir, "--reuse-values", "--set=operator.features.storageVersionMigrator=false")...)
	if err := deployment(); !apierrors.IsNotFound(err) {
		t.Errorf("the feature is off, and its Deployment there: %v", err)
	}

	const crd = "crdmigrations.godwit.dev"
	if err := controlplane.AwaitServed(t.Context(), c.cfg, crd); err != nil {
		t.Fatal(err)
	}
	mine := &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: "mine.example.com"}}
	if err := c.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	mustHelm(t, append(release, "uninstall", "godwit")...)
	there := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: crd}, there); err != nil || there.DeletionTimestamp != nil {
		t.Errorf("the CRD is deleted at %v: %v", there.DeletionTimestamp, err)
	}
	if err := c.Delete(t.Context(), mine); err != nil {
		t.Errorf("it did not stay: %v", err)
	}
	c.playGuides(kubeconfig)
}

// TestRestrictedNamespaceAcceptsTheChart: without an error or a warning, and also the pod that its Deployment creates.
func TestRestrictedNamespaceAcceptsTheChart(t *testing.T) {
	c := newCluster(t)
	c.restrictedNamespace("restricted")
	loose := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "loose", Namespace: "restricted"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "loose", Image: "loose"}}},
	}
	if err := c.Create(t.Context(), loose); !apierrors.IsForbidden(err) {
		t.Fatalf("the namespace is not restricted: %v", err)
	}

	for _, values := range []string{"--set=operator.replicas=1", everything} {
		objects := decode(t, mustHelm(t, "template", "godwit", chartDir, "--namespace=restricted", values))
		c.apply(objects, metav1.DryRunAll)
		c.apply(objects)
		for _, component := range []string{"storage-version-migrator", "revision-upgrader"} {
			of := named(objects, "godwit-"+component)
			if len(of) == 0 {
				continue // by default that feature is off
			}
			template := find[appsv1.Deployment](t, of, "Deployment").Spec.Template
			pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
			pod.Namespace, pod.GenerateName = "restricted", "manager-"
			if err := c.Create(t.Context(), pod); err != nil {
				t.Errorf("%s: the pod of %s: %v", values, component, err)
			}
			c.warnings.mustBeNone(t, "the pod of "+component)
		}
	}
}
