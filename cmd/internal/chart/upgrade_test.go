package chart_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
	"github.com/godwit-dev/godwit/test/program"
)

const (
	pieces = root + "/examples/upgrade"

	// kustomizeController is the module that has the CRD of Flux's Kustomization.
	kustomizeController = "github.com/fluxcd/kustomize-controller@v1.7.3"
)

// kustomized builds a folder as kustomize does. A component is built by a kustomization that has nothing else.
func kustomized(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	there, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(there, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	fs, build := filesys.MakeFsOnDisk(), there
	if strings.Contains(string(text), "\nkind: Component\n") {
		build = t.TempDir()
		relative, err := filepath.Rel(build, there)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(build, "kustomization.yaml"), []byte("components: ["+relative+"]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, build)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(manifest))
}

// TestPiecesOfAnUpgrade: each piece has the permissions of the command of its Job and no others, is accepted by the API server,
// also as a restricted pod, and its command migrates with the permissions of its ServiceAccount.
func TestPiecesOfAnUpgrade(t *testing.T) {
	c := newCluster(t)
	c.restrictedNamespace("widget-system")
	c.restrictedNamespace("gadget-system")
	helmed := decode(t, mustHelm(t, "template", "gadgets", pieces+"/helm", "--namespace=gadget-system", "--set=godwit.crds={gadgets.example.com}"))
	for name, piece := range map[string]struct {
		objects        []*unstructured.Unstructured
		namespace, crd string
		hook           string // annotation of each object
	}{
		"kustomize": {kustomized(t, pieces+"/kustomize"), "widget-system", "widgets.example.com", ""},
		"argocd":    {kustomized(t, pieces+"/argocd"), "widget-system", "widgets.example.com", "argocd.argoproj.io/hook"},
		"helm":      {helmed, "gadget-system", "gadgets.example.com", "helm.sh/hook"},
	} {
		t.Run(name, func(t *testing.T) {
			c := *c
			c.t = t
			for _, o := range piece.objects {
				if _, ok := o.GetAnnotations()[piece.hook]; !ok && piece.hook != "" {
					t.Errorf("%s has no annotation %s", o.GetName(), piece.hook)
				}
			}
			checkPermissions(t, piece.objects, piece.namespace, piece.crd)
			checkEvictions(t, find[batchv1.Job](t, piece.objects, "Job"))
			c.apply(piece.objects, metav1.DryRunAll)
			c.migrate(piece.objects, piece.namespace, piece.crd)
		})
	}
}

// checkPermissions compares the rules, by namespace, with those that `godwit rbac` prints.
func checkPermissions(t *testing.T, objects []*unstructured.Unstructured, namespace, crd string) {
	t.Helper()
	got := map[string][]string{"": atoms(find[rbacv1.ClusterRole](t, objects, "ClusterRole").Rules)}
	for _, in := range []string{metav1.NamespaceSystem, metav1.NamespaceDefault} {
		got[in] = atoms(find[rbacv1.Role](t, inNamespace(objects, in), "Role").Rules)
	}
	want := map[string][]string{}
	for _, role := range permission.Roles(crdpermission.Run.Permissions(permission.Scope{CRDs: []string{crd}})) {
		want[role.Namespace] = atoms(role.Rules)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions by namespace (-godwit rbac +piece):\n%s", diff)
	}
	account := find[corev1.ServiceAccount](t, objects, "ServiceAccount")
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: namespace}}
	if diff := cmp.Diff(subjects, find[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding").Subjects); diff != "" {
		t.Errorf("bound (-want +got):\n%s", diff)
	}
	for _, in := range []string{metav1.NamespaceSystem, metav1.NamespaceDefault} {
		if diff := cmp.Diff(subjects, find[rbacv1.RoleBinding](t, inNamespace(objects, in), "RoleBinding").Subjects); diff != "" {
			t.Errorf("bound in %s (-want +got):\n%s", in, diff)
		}
	}
}

// checkEvictions fails unless an eviction of a pod is not one of the failures that the Job bears.
func checkEvictions(t *testing.T, job *batchv1.Job) {
	t.Helper()
	want := &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget}},
	}}}
	if diff := cmp.Diff(want, job.Spec.PodFailurePolicy); diff != "" {
		t.Errorf("podFailurePolicy of Job %s (-want +got):\n%s", job.Name, diff)
	}
}

func inNamespace(objects []*unstructured.Unstructured, namespace string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetNamespace() != namespace })
}

// atoms are single permissions.
func atoms(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, r := range rules {
		names := r.ResourceNames
		if len(names) == 0 {
			names = []string{"*"}
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					for _, name := range names {
						all = append(all, strings.Join([]string{verb, group, resource, name}, " "))
					}
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// migrate applies the permissions of a piece, and runs the command of its Job as its ServiceAccount. It then removes all of it:
// the next piece, which may have the same names, must do with its own permissions.
func (c *cluster) migrate(objects []*unstructured.Unstructured, namespace, crd string) {
	c.t.Helper()
	c.flipLongAgo(crd)
	job := find[batchv1.Job](c.t, objects, "Job")
	kinds := func(of func(kind string) bool) []*unstructured.Unstructured {
		return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return !of(o.GetKind()) })
	}
	account := kinds(func(kind string) bool { return kind == "ServiceAccount" })
	permissions := kinds(func(kind string) bool { return kind != "ServiceAccount" && kind != "Job" })
	c.t.Cleanup(func() { c.remove(crd, append(account, permissions...)) })
	c.apply(account)
	pod := job.Spec.Template.Spec
	kubeconfig := filepath.Join(c.t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, c.as(namespace, pod.ServiceAccountName)); err != nil {
		c.t.Fatal(err)
	}
	permitted := func() bool {
		out, _ := godwit(c.t, kubeconfig, "crd", "plan", crd)
		return !strings.Contains(out, "Forbidden") && !strings.Contains(out, "lacks permissions")
	}
	await(c.t, "the permissions of the piece before it to be forgotten", func() bool { return !permitted() })
	c.apply(permissions)
	await(c.t, "the permissions to be known", permitted)
	args := append(slices.Clone(pod.Containers[0].Args), "--settle=1s") // the Job itself waits 75 s
	out, err := godwit(c.t, kubeconfig, args...)
	if err != nil || !strings.Contains(out, "✓ Succeeded") || strings.Contains(out, "lacks") {
		c.t.Fatalf("%v: %v\n%s", pod.Containers[0].Args, err, out)
	}
	there := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(c.t.Context(), client.ObjectKey{Name: crd}, there); err != nil || !slices.Equal(there.Status.StoredVersions, []string{"v2"}) {
		c.t.Errorf("storedVersions are %v: %v", there.Status.StoredVersions, err)
	}
}

// remove deletes a CRD and the permissions of a piece.
func (c *cluster) remove(crd string, permissions []*unstructured.Unstructured) {
	ctx := context.Background() // that of the test has ended
	for _, o := range permissions {
		if err := client.IgnoreNotFound(c.Delete(ctx, o)); err != nil {
			c.t.Error(err)
		}
	}
	there := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd}}
	if err := c.Delete(ctx, there); err != nil {
		c.t.Error(err)
	}
	await(c.t, "the CRD to be gone", func() bool { return apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Name: crd}, there)) })
}

// flipLongAgo makes a CRD with an object at v1, and v2 its storage version since two hours, so that no run waits.
func (c *cluster) flipLongAgo(name string) {
	c.t.Helper()
	plural, group, _ := strings.Cut(name, ".")
	kind := strings.ToUpper(plural[:1]) + plural[1:len(plural)-1]
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true)},
		},
	}
	if err := controlplane.InstallCRDs(c.t.Context(), c.cfg, crd); err != nil {
		c.t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(group + "/v1")
	o.SetKind(kind)
	o.SetName("one")
	if err := c.Create(c.t.Context(), o); err != nil {
		c.t.Fatal(err)
	}
	c.flip(name)
	before := metav1.NewTime(time.Now().Add(-2 * time.Hour))
	_, err := controlplane.UpdateCRD(c.t.Context(), c.cfg, name, func(there *apiextensionsv1.CustomResourceDefinition) {
		for i := range there.ManagedFields {
			there.ManagedFields[i].Time = &before
		}
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// godwitPath is the binary, compiled once for all tests.
var godwitPath = sync.OnceValues(func() (string, error) {
	dir, err := scratchDir()
	if err != nil {
		return "", err
	}
	return program.Godwit(context.Background(), dir)
})

// godwit runs the binary.
func godwit(t *testing.T, kubeconfig string, args ...string) (string, error) {
	t.Helper()
	path, err := godwitPath()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, args...)
	command.Env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + t.TempDir()}
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err = command.Run()
	return out.String(), err
}

// TestFluxPieces are what Flux and Godwit know.
func TestFluxPieces(t *testing.T) {
	c := newCluster(t)
	dir, err := gomodule.Dir(t.Context(), kustomizeController)
	if err != nil {
		t.Fatal(err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range []string{
		filepath.Join(dir, "config", "crd", "bases", "kustomize.toolkit.fluxcd.io_kustomizations.yaml"),
		filepath.Join(root, "api", "v1alpha1", "crd", "godwit.dev_crdmigrations.yaml"),
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := controlplane.DecodeCRDs(text)
		if err != nil {
			t.Fatal(err)
		}
		crds = append(crds, decoded...)
	}
	for _, crd := range crds {
		if err := client.IgnoreAlreadyExists(c.Create(t.Context(), crd.DeepCopy())); err != nil {
			t.Fatal(err)
		}
		if err := controlplane.AwaitServed(t.Context(), c.cfg, crd.Name); err != nil {
			t.Fatal(err)
		}
	}
	c.restrictedNamespace("flux-system")
	var all []*unstructured.Unstructured
	for _, file := range []string{"migration.yaml", "kustomizations.yaml"} {
		text, err := os.ReadFile(filepath.Join(pieces, "flux", file))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, decode(t, string(text))...)
	}
	c.apply(all, metav1.DryRunAll)
	checks, _, err := unstructured.NestedSlice(all[1].Object, "spec", "healthChecks")
	want := []any{map[string]any{"apiVersion": all[0].GetAPIVersion(), "kind": all[0].GetKind(), "name": all[0].GetName()}}
	if diff := cmp.Diff(want, checks); diff != "" || err != nil {
		t.Errorf("%v: the health check is not of the migration (-want +got):\n%s", err, diff)
	}
}
