package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
)

// prometheusOperator is the module that has the CRDs of monitors and rules.
const prometheusOperator = "github.com/prometheus-operator/prometheus-operator@v0.93.0"

// everything has other values than the default, of what the manager of storage versions and its pods have.
func everything(g *geese) map[string]any {
	selector := map[string]any{"matchLabels": map[string]any{"app.kubernetes.io/name": "godwit"}}
	return map[string]any{
		"image":            map[string]any{"pullPolicy": "Never"},
		"imagePullSecrets": []any{map[string]any{"name": "registry"}},
		"crds":             map[string]any{"enabled": true, "keep": true},
		"rbac":             map[string]any{"aggregate": false},
		"operator": map[string]any{
			"replicas": 3, "logVerbosity": 2, "terminationGracePeriodSeconds": 20, "priorityClassName": "important",
			"env": []any{
				map[string]any{"name": "GOMAXPROCS", "value": "2"},
				map[string]any{"name": "GOMEMLIMIT", "valueFrom": map[string]any{"resourceFieldRef": map[string]any{"resource": "limits.memory"}}},
			},
			"resources":    map[string]any{"requests": map[string]any{"cpu": "20m", "memory": "32Mi"}, "limits": map[string]any{"cpu": "1", "memory": "300Mi"}},
			"nodeSelector": map[string]any{"kubernetes.io/os": "linux"},
			"tolerations":  []any{map[string]any{"key": "reserved", "operator": "Exists", "effect": "NoSchedule"}},
			"affinity": map[string]any{"podAntiAffinity": map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": []any{
				map[string]any{"weight": 1, "podAffinityTerm": map[string]any{"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}},
			}}},
			"topologySpreadConstraints": []any{map[string]any{"maxSkew": 3, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}},
			"serviceAccountAnnotations": map[string]any{"example.com/role": "reader"},
			"overrides":                 map[string]any{"storageVersionMigrator": map[string]any{"priorityClassName": "more-important"}},
			"podAnnotations":            map[string]any{"example.com/owner": "platform"},
			"podLabels":                 map[string]any{"team": "platform"},
		},
		"storageVersionMigrator": map[string]any{
			"scopes":   []any{map[string]any{"group": g.group, "labelSelector": map[string]any{"matchLabels": map[string]any{"godwit.dev/auto-migrate-storage-version": "true"}}}},
			"defaults": map[string]any{"phases": []any{"StorageVersionMigration"}, "write": "Patch", "settle": "1s", "trim": true, "maxInFlight": 4, "maxWritesPerSecond": 100},
			"rbac":     map[string]any{"groups": []any{"other.example.com"}, "writes": []any{"Update"}},
		},
		"limits": map[string]any{"maxInFlight": 8, "maxWritesPerSecond": 200, "maxBytesPerFiveMinutes": "1Gi"},
		"metrics": map[string]any{
			"podMonitor":     map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}, "interval": "30s"},
			"prometheusRule": map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}, "alertLabels": map[string]any{"team": "platform"}, "disabled": []any{"GodwitThrottled"}, "runbookURL": "https://runbooks.example.com/"},
			"dashboard":      map[string]any{"enabled": true, "annotations": map[string]any{"grafana_folder": "platform"}},
		},
		"networkPolicy": map[string]any{
			"metricsFrom": []any{map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "monitoring"}}}},
			"egress":      []any{map[string]any{"ports": []any{map[string]any{"port": 443}}, "to": []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.0.0.1/32"}}}}},
		},
	}
}

// TestEveryValue: pods with every value of the chart are scheduled, are ready and migrate. Then everything is off that can be.
func TestEveryValue(t *testing.T) {
	s := newStage(t, version)
	s.installMonitors()
	for name, value := range map[string]int32{"important": 1000, "more-important": 2000} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if err := client.IgnoreAlreadyExists(s.Create(t.Context(), class)); err != nil {
			t.Fatal(err)
		}
	}
	g := s.define("values.example.com", 50)
	values := everything(g)
	s.install(version, values)
	s.expectReady(version, 3)
	for _, p := range s.pods() {
		if p.Spec.Priority == nil || *p.Spec.Priority != 2000 || p.Annotations["example.com/owner"] != "platform" || p.Labels["team"] != "platform" ||
			p.Status.QOSClass != corev1.PodQOSBurstable {
			t.Errorf("pod %s does not have the values: %+v", p.Name, p)
		}
	}
	s.awaitBudget(2)
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "godwit-storage-version-migrator"}, &networkingv1.NetworkPolicy{}); err != nil {
		t.Error(err)
	}
	g.flip()
	g.awaitMigrated()

	off := maps.Clone(values)
	off["networkPolicy"], off["podDisruptionBudget"] = map[string]any{"enabled": false}, map[string]any{"enabled": false}
	off["metrics"], off["fullnameOverride"] = map[string]any{"enabled": false}, "another"
	off["operator"] = map[string]any{"replicas": 1}
	s.install(version, off)
	s.await("the pod of the other name to be the only one", func(ctx context.Context) error {
		there := &appsv1.DeploymentList{}
		if err := s.List(ctx, there, client.InNamespace(system)); err != nil {
			return err
		}
		if len(there.Items) != 1 || there.Items[0].Name != "another-storage-version-migrator" || len(s.pods()) != 1 {
			return fmt.Errorf("there are %d Deployments and %d pods", len(there.Items), len(s.pods()))
		}
		return nil
	})
	budgets := &policyv1.PodDisruptionBudgetList{}
	if err := s.List(t.Context(), budgets, client.InNamespace(system)); err != nil || len(budgets.Items) > 0 {
		t.Errorf("budgets are left: %v: %v", budgets.Items, err)
	}
}

// installMonitors installs the CRDs of the Prometheus operator.
func (s *stage) installMonitors() {
	s.t.Helper()
	dir, err := gomodule.Dir(s.t.Context(), prometheusOperator)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"podmonitors", "servicemonitors", "prometheusrules"} {
		text, err := os.ReadFile(filepath.Join(dir, "example", "prometheus-operator-crd", "monitoring.coreos.com_"+name+".yaml"))
		if err != nil {
			s.t.Fatal(err)
		}
		crds, err := controlplane.DecodeCRDs(text)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := s.Get(s.t.Context(), client.ObjectKey{Name: crds[0].Name}, &apiextensionsv1.CustomResourceDefinition{}); err == nil {
			continue
		}
		if err := controlplane.InstallCRDs(s.t.Context(), s.Config(), crds...); err != nil {
			s.t.Fatal(err)
		}
	}
}

// awaitBudget waits until the PodDisruptionBudget allows one of its pods to end.
func (s *stage) awaitBudget(healthy int32) {
	s.t.Helper()
	s.await("the budget to keep all pods but one", func(ctx context.Context) error {
		budget := &policyv1.PodDisruptionBudget{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: system, Name: "godwit-storage-version-migrator"}, budget); err != nil {
			return err
		}
		if budget.Status.DisruptionsAllowed != 1 || budget.Status.DesiredHealthy != healthy {
			return fmt.Errorf("its status is %+v", budget.Status)
		}
		return nil
	})
}
