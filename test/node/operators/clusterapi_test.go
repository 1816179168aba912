package operators_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
	"github.com/godwit-dev/godwit/test/node/operators/page"
)

// The releases of Cluster API. The old one stores v1beta1, and does not know v1beta2, which the new one stores.
const (
	clusterAPIOld = "sigs.k8s.io/cluster-api@v1.10.10"
	clusterAPINew = "sigs.k8s.io/cluster-api@v1.14.2"
)

const clusterAPINamespace = "capi-system"

// renderClusterAPI returns the objects of a release, whose manager is an image of tools/operators.
func (s *stage) renderClusterAPI(module, folder, image string) []*unstructured.Unstructured {
	s.t.Helper()
	dir, err := gomodule.Dir(s.t.Context(), module)
	if err != nil {
		s.t.Fatal(err)
	}
	text := s.mustRun("kubectl", "kustomize", filepath.Join(dir, folder))
	text = os.Expand(text, func(name string) string {
		_, value, _ := strings.Cut(name, ":=")
		return value
	})
	objects, err := decode([]byte(text))
	if err != nil {
		s.t.Fatal(err)
	}
	s.runImage(objects, image)
	return objects
}

// permissions are those that the documentation names, beyond what the release has for its own migrator.
const permissions = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: capi-godwit}
rules:
- {apiGroups: [storagemigration.k8s.io, migration.k8s.io], resources: [storageversionmigrations], verbs: [list]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [list]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: capi-godwit}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: capi-godwit}
subjects: [{kind: ServiceAccount, name: capi-manager, namespace: capi-system}]
`

// TestClusterAPI: v1.10 → v1.14, whose manager has Godwit's migrator in place of its own. It migrates all objects, and the CRDs then drop
// v1beta1.
func TestClusterAPI(t *testing.T) {
	s := newStage(t, clusterAPI)
	s.showIfFailed(clusterAPINamespace)
	s.needCertManager()
	s.installInfrastructure()
	if err := s.AwaitNamespace(t.Context(), fleet, nil); err != nil {
		t.Fatal(err)
	}
	release := s.renderClusterAPI(clusterAPIOld, "config/default", "cluster-api-v1.10-cluster-api")
	s.apply(release)
	s.awaitDeployments(clusterAPINamespace)
	s.fillFleet()
	old := s.fleetAt("v1beta1")

	more, err := decode([]byte(permissions))
	if err != nil {
		t.Fatal(err)
	}
	s.uninstall(release)
	s.apply(append(s.renderClusterAPI(clusterAPINew, "core/config/default", "cluster-api-v1.14"), more...))
	s.awaitDeployments(clusterAPINamespace)
	began := s.managerStarted()
	s.await("the webhook of the new release to convert", func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: coreGroup, Version: "v1beta2", Kind: "ClusterList"})
		return s.List(ctx, list)
	})
	before := s.fleetAt("v1beta2")
	lost := s.mustKeep("after the new release", old, s.fleetAt("v1beta1")).Lost
	s.giveUpValues()
	names := s.awaitClusterAPIMigrated()
	took := time.Since(began)
	lost += s.mustKeep("after the migration, at v1beta2", before, s.fleetAt("v1beta2")).Lost
	kept := s.mustKeep("after the migration, at v1beta1", old, s.fleetAt("v1beta1"), withoutValues...)
	for _, field := range withoutValues {
		if kept.GivenUp[field] != clusters {
			t.Errorf("%d objects have lost %s, want %d, which each had", kept.GivenUp[field], field, clusters)
		}
	}
	s.t.Log(s.mustRun("godwit", append([]string{"crd", "verify", "--etcd-servers=" + s.EtcdEndpoint()}, names...)...))

	s.dropVersion(names, schema.GroupVersion{Group: coreGroup, Version: "v1beta1"})
	lost += s.mustKeep("without v1beta1", before, s.fleetAt("v1beta2")).Lost
	s.expectDefaulted()
	s.expectReconciled()
	record(t, page.Row{
		Operator: "Cluster API", Releases: []string{"v1.10.10 (stores v1beta1)", "v1.14.2 with Godwit's migrator (stores v1beta2)", "without v1beta1"},
		Objects: kept.Objects, Lost: lost + kept.Lost, GivenUp: kept.GivenUp, Took: took,
		Also: "webhooks convert, default and validate, controllers reconcile afterwards",
	})
}

// managerStarted returns when the manager has started, which has Godwit's migrator.
func (s *stage) managerStarted() time.Time {
	s.t.Helper()
	pods := &corev1.PodList{}
	if err := s.List(s.t.Context(), pods, client.InNamespace(clusterAPINamespace)); err != nil {
		s.t.Fatal(err)
	}
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil && len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Running != nil {
			if restarts := p.Status.ContainerStatuses[0].RestartCount; restarts > 0 {
				s.t.Errorf("the manager in pod %s has restarted %d times", p.Name, restarts)
			}
			return p.Status.ContainerStatuses[0].State.Running.StartedAt.Time
		}
	}
	s.t.Fatalf("no manager runs in %s: %+v", clusterAPINamespace, pods.Items)
	return time.Time{}
}

// uninstall deletes a release, as clusterctl does before it installs the next one: without CRDs, objects and namespace.
func (s *stage) uninstall(release []*unstructured.Unstructured) {
	s.t.Helper()
	file := s.write(release, func(o *unstructured.Unstructured) bool { return !isCRD(o) && o.GetKind() != "Namespace" })
	s.mustRun("kubectl", "delete", "--wait", "-f", file)
}

// needCertManager installs the newest cert-manager, unless a test has left it: certificates of webhooks are issued by it.
func (s *stage) needCertManager() {
	s.t.Helper()
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: certManagerNamespace, Name: "cert-manager"}, &appsv1.Deployment{}); err == nil {
		return
	}
	if err := s.AwaitNamespace(s.t.Context(), certManagerNamespace, nil); err != nil {
		s.t.Fatal(err)
	}
	s.apply(s.certManagerNew())
	s.awaitDeployments(certManagerNamespace)
	s.await("cert-manager's webhook to answer", func(ctx context.Context) error {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"selfSigned": map[string]any{}}}}
		o.SetAPIVersion(certManagerGroup + "/v1")
		o.SetKind("ClusterIssuer")
		o.SetName("tried")
		return s.Create(ctx, o, client.DryRunAll)
	})
}

// withoutValues are fields of MachineDeployments that v1beta2 lacks on purpose. The webhook of the old release sets both in each object.
var withoutValues = []string{"spec.progressDeadlineSeconds", "spec.revisionHistoryLimit"}

// giveUpValues expects that Godwit migrates no MachineDeployment while a rewrite would drop values, and gives these up.
func (s *stage) giveUpValues() {
	s.t.Helper()
	name := "machinedeployments." + coreGroup
	run := []string{"crd", "run", name, "--yes"}
	out, err := s.command(s.t.Context(), "godwit", "crd", "plan", name)
	for _, field := range withoutValues {
		run = append(run, "--accept-loss="+field)
		if err == nil || !strings.Contains(out, "FieldsWouldBeLost") || !strings.Contains(out, fmt.Sprintf("%s (%d objects", field, clusters)) {
			s.t.Errorf("godwit does not refuse to drop %s: %v\n%s", field, err, out)
		}
	}
	s.t.Log(out)
	s.t.Log(s.mustRun("godwit", run...))
}

// awaitClusterAPIMigrated waits until each CRD that has objects at v1beta1 has v1beta2 alone in its storedVersions, and returns their names.
func (s *stage) awaitClusterAPIMigrated() []string {
	s.t.Helper()
	var names []string
	s.await("the manager to migrate all CRDs", func(ctx context.Context) error {
		list := &apiextensionsv1.CustomResourceDefinitionList{}
		if err := s.List(ctx, list); err != nil {
			return err
		}
		names = nil
		for _, crd := range list.Items {
			if crd.Labels["cluster.x-k8s.io/provider"] != "cluster-api" || !slices.Contains([]string{coreGroup, addonGroup}, crd.Spec.Group) ||
				!slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == "v1beta1" }) ||
				crd.Spec.Names.Kind == "ClusterClass" { // of a feature that is off
				continue
			}
			if len(crd.Status.StoredVersions) != 1 || crd.Status.StoredVersions[0] != "v1beta2" {
				return fmt.Errorf("CRD %s has storedVersions %v", crd.Name, crd.Status.StoredVersions)
			}
			names = append(names, crd.Name)
		}
		return nil
	})
	return names
}

// dropVersion removes a version of CRDs, as two releases do: the first one does not serve it any more, and the manager then removes
// it from managedFields.
func (s *stage) dropVersion(names []string, old schema.GroupVersion) {
	s.t.Helper()
	edit := func(name string, change func(*apiextensionsv1.CustomResourceDefinition)) {
		s.t.Helper()
		if _, err := controlplane.UpdateCRD(s.t.Context(), s.Config(), name, change); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, name := range names {
		edit(name, func(crd *apiextensionsv1.CustomResourceDefinition) {
			for i := range crd.Spec.Versions {
				crd.Spec.Versions[i].Served = crd.Spec.Versions[i].Served && crd.Spec.Versions[i].Name != old.Version
			}
		})
	}
	s.await("the manager to remove "+old.Version+" from managedFields", func(ctx context.Context) error {
		for _, kind := range coreKinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: coreGroup, Version: "v1beta2", Kind: kind + "List"})
			if err := s.List(ctx, list); err != nil {
				return err
			}
			for i := range list.Items {
				for _, entry := range list.Items[i].GetManagedFields() {
					if entry.APIVersion == old.String() {
						return fmt.Errorf("%s %s has an entry of %s", kind, list.Items[i].GetName(), entry.Manager)
					}
				}
			}
		}
		return nil
	})
	for _, name := range names {
		edit(name, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == old.Version })
		})
	}
}

// expectDefaulted fails unless the webhooks of the new release change a new object, and refuse one that is not valid.
func (s *stage) expectDefaulted() {
	s.t.Helper()
	check := func(name, remediation string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"clusterName": "cluster-00", "selector": map[string]any{"matchLabels": map[string]any{"pool": name}},
			"remediation": map[string]any{"triggerIf": map[string]any{"unhealthyLessThanOrEqualTo": remediation}},
		}}}
		o.SetAPIVersion(coreGroup + "/v1beta2")
		o.SetKind("MachineHealthCheck")
		o.SetNamespace(fleet)
		o.SetName(name)
		return o
	}
	good := check("after", "40%")
	if err := s.Create(s.t.Context(), good); err != nil || good.GetLabels()["cluster.x-k8s.io/cluster-name"] != "cluster-00" {
		s.t.Errorf("the webhook has not set the label: %v, %v", good.Object, err)
	}
	if err := s.Create(s.t.Context(), check("invalid", "many")); err == nil || !strings.Contains(err.Error(), "denied the request") {
		s.t.Errorf("the webhook accepts an invalid object: %v", err)
	}
}

// expectReconciled unpauses a Cluster, and waits until the manager writes so into the status of the Cluster, and of what belongs to it.
func (s *stage) expectReconciled() {
	s.t.Helper()
	s.awaitPaused("True")
	s.mustRun("kubectl", "-n", fleet, "patch", "clusters."+coreGroup, "cluster-01", "--type=merge", `--patch={"spec":{"paused":false}}`)
	s.awaitPaused("False")
}

// awaitPaused waits for the status of the condition Paused.
func (s *stage) awaitPaused(status string) {
	s.t.Helper()
	for _, kind := range []string{"Cluster", "MachineDeployment", "MachineSet"} {
		s.await("the manager to write that the "+kind+" is paused: "+status, func(ctx context.Context) error {
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(schema.GroupVersionKind{Group: coreGroup, Version: "v1beta2", Kind: kind})
			if err := s.Get(ctx, client.ObjectKey{Namespace: fleet, Name: "cluster-01"}, o); err != nil {
				return err
			}
			conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			for _, c := range conditions {
				if c, ok := c.(map[string]any); ok && c["type"] == "Paused" && c["status"] == status {
					return nil
				}
			}
			return fmt.Errorf("its status is %v", o.Object["status"])
		})
	}
}
