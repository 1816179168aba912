package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
	kubevirtcluster "github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/node"
)

// These modules have the CRDs of kinds that the chart has objects of.
const (
	prometheusOperator = "github.com/prometheus-operator/prometheus-operator@v0.93.0"
	certManager        = "github.com/cert-manager/cert-manager@v1.21.2"
)

// component is the label by which the pods of a feature differ from those of others.
const component = "app.kubernetes.io/component"

// TestEveryValue: releases with every value of the chart are scheduled on two nodes, are ready and work. Then everything is off that can be.
// No Kafka runs: make e2e-hub tests passwords of Kafka, and moves of clusters.
func TestEveryValue(t *testing.T) {
	s := newStage(t, version)
	if err := s.addSecondNode(); err != nil {
		t.Fatal(err)
	}
	s.installMonitors()
	s.installFrom(certManager, "deploy/crds", "cert-manager.io_certificates.yaml", "cert-manager.io_issuers.yaml")
	if err := kubevirtcluster.Install(t.Context(), s.Config()); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]int32{"important": 1000, "more-important": 2000} {
		if err := s.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Load(t.Context(), node.Image{Repository: mirror, Layout: s.image(version).Layout}); err != nil {
		t.Fatal(err)
	}
	g := s.define("values.example.com", 50)
	values, off := parse(t, managerValues, "GROUP", g.group), parse(t, offValues)
	expectAllUsed(t, values, off, parse(t, agentValues), parse(t, plainAgentValues))

	s.makeSecret(kafkaSecret, kafkaFiles(t, certify(t, "kafka.example.com")["ca.crt"]))
	s.makeScraper("scraper", "bearer")
	s.installWith(version, values, "--wait=false")
	s.issueCertificate("godwit-metrics")
	s.installWith(version, values, "--wait", "--timeout=5m")
	s.expectReady(version, 6)
	s.expectApart()
	s.expectObjects(managerObjects)
	s.expectMetrics()
	t.Run("features", func(t *testing.T) {
		for name, test := range map[string]func(*stage){
			"revisionUpgrader": (*stage).testRevisionUpgrader,
			"clusterMigration": (*stage).testClusterMigration,
			"hubAgent":         (*stage).testHubAgent,
			"migrator":         func(s *stage) { g.s = s; g.flip(); g.awaitMigrated() },
			"liveness":         (*stage).testLiveness,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(s.with(t))
			})
		}
	})
	s.install(version, off)
	s.expectOff()
	s.helm("uninstall", s.name, "--wait")
	s.expectGone(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "crdmigrations.godwit.dev"}}, "crds.keep is off")
}

// podsOf returns the pods of a feature.
func (s *stage) podsOf(feature string) []corev1.Pod {
	s.t.Helper()
	var found []corev1.Pod
	for _, p := range s.pods() {
		if p.Labels[component] == feature {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		s.t.Fatalf("%s has no pods", feature)
	}
	return found
}

// expectApart fails unless the two pods of each feature are on different nodes.
func (s *stage) expectApart() {
	s.t.Helper()
	for _, feature := range []string{"storage-version-migrator", "revision-upgrader", "cluster-migration"} {
		if pods := s.podsOf(feature); len(pods) != 2 || pods[0].Spec.NodeName == pods[1].Spec.NodeName {
			s.t.Errorf("%s has %d pods, on %s and %s, want two on different nodes", feature, len(pods), pods[0].Spec.NodeName, pods[len(pods)-1].Spec.NodeName)
		}
	}
}

// managerObjects are parts of objects that managerValues decide.
const managerObjects = `
- apiVersion: v1
  kind: Service
  metadata: {name: godwit-metrics, annotations: {example.com/owner: platform}}
- apiVersion: monitoring.coreos.com/v1
  kind: ServiceMonitor
  metadata: {name: godwit-metrics, labels: {release: prometheus}}
  spec: {endpoints: [{interval: 30s, tlsConfig: {ca: {secret: {name: godwit-metrics-tls, key: ca.crt}}}}]}
- apiVersion: monitoring.coreos.com/v1
  kind: PodMonitor
  metadata: {name: godwit-revision-upgrader, labels: {release: prometheus}}
  spec: {podMetricsEndpoints: [{interval: 40s}]}
- apiVersion: monitoring.coreos.com/v1
  kind: PrometheusRule
  metadata: {name: godwit, labels: {release: prometheus}}
  spec:
    groups:
      - rules:
          - alert: GodwitAbsent
            labels: {team: platform}
            annotations: {runbook_url: "https://runbooks.example.com/alerts.md#godwitabsent"}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: godwit-dashboard, labels: {grafana: "yes"}, annotations: {grafana_folder: platform}}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: godwit-metrics-prometheus}
  subjects: [{kind: ServiceAccount, name: prometheus, namespace: monitoring}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata: {name: godwit-storage-version-migrator}
  rules: [{apiGroups: [other.example.com], resources: ["*"], verbs: [get, list, patch, update]}]
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata: {name: godwit-revision-upgrader}
  spec:
    ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}]
    egress: [{ports: [{port: 443}], to: [{ipBlock: {cidr: 10.0.0.1/32}}]}]
- apiVersion: policy/v1
  kind: PodDisruptionBudget
  metadata: {name: godwit-revision-upgrader}
  status: {disruptionsAllowed: 1, desiredHealthy: 1}
- apiVersion: v1
  kind: ServiceAccount
  metadata: {name: godwit-revision-upgrader, annotations: {example.com/role: reader}}
- apiVersion: v1
  kind: ServiceAccount
  metadata: {name: godwit-cluster-migration, annotations: {example.com/role: own}}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: godwit-revision-upgrader}
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingAdmissionPolicy
  metadata: {name: godwit-migration-creator}
- apiVersion: v1
  kind: Pod
  metadata: {labels: {app.kubernetes.io/component: revision-upgrader, team: platform}, annotations: {example.com/owner: platform}}
  spec:
    priority: 1000
    terminationGracePeriodSeconds: 5
    nodeSelector: {kubernetes.io/os: linux}
    tolerations: [{key: reserved, operator: Exists, effect: NoSchedule}]
    imagePullSecrets: [{name: registry}]
    containers:
      - image: ` + mirror + ":" + version + `
        imagePullPolicy: Never
        args: [--verbose]
        env: [{name: GOMAXPROCS, value: "2"}, {name: GOMEMLIMIT}]
        resources: {requests: {cpu: 20m, memory: 32Mi}, limits: {cpu: "1", memory: 300Mi}}
  status: {qosClass: Burstable}
- apiVersion: v1
  kind: Pod
  metadata: {labels: {app.kubernetes.io/component: storage-version-migrator}}
  spec:
    priority: 2000
    nodeSelector: {kubernetes.io/arch: ARCH}
    tolerations: [{key: own, operator: Exists, effect: NoSchedule}]
    containers: [{resources: {requests: {cpu: 30m, memory: 48Mi}, limits: {memory: 400Mi}}}]
`

// expectObjects waits until the API server has objects of which these are parts. An object without a name has the labels.
func (s *stage) expectObjects(parts string) {
	s.t.Helper()
	var wanted []map[string]any
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(parts, "ARCH", runtime.GOARCH)), &wanted); err != nil {
		s.t.Fatal(err)
	}
	for _, part := range wanted {
		o := &unstructured.Unstructured{Object: part}
		s.await(fmt.Sprintf("%s %s to be as the values say", o.GetKind(), o.GetName()), func(ctx context.Context) error {
			there, err := s.alike(ctx, o)
			for _, object := range there {
				if isPart(part, object) {
					return nil
				}
			}
			return fmt.Errorf("no object has %v: %v: %w", part, there, err)
		})
	}
}

// alike returns the objects of the release, or of the cluster, that have the kind and the name of another one, or its labels if it has no
// name. Their content is that of decoded JSON.
func (s *stage) alike(ctx context.Context, as *unstructured.Unstructured) ([]any, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(as.GroupVersionKind())
	if err := s.List(ctx, list); err != nil {
		return nil, err
	}
	var found []any
	for _, o := range list.Items {
		if o.GetNamespace() != "" && o.GetNamespace() != s.namespace ||
			as.GetName() != "" && o.GetName() != as.GetName() || !labels.SelectorFromSet(as.GetLabels()).Matches(labels.Set(o.GetLabels())) {
			continue
		}
		text, err := json.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		var object any
		if err := json.Unmarshal(text, &object); err != nil {
			return nil, err
		}
		found = append(found, object)
	}
	return found, nil
}

// expectGone waits until an object is gone.
func (s *stage) expectGone(o client.Object, why string) {
	s.t.Helper()
	s.await(fmt.Sprintf("%T %s to be gone: %s", o, o.GetName(), why), func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// expectOff fails unless each feature has one pod of the other name, and the release has none of the objects that are off.
func (s *stage) expectOff() {
	s.t.Helper()
	s.await("the pods of the other name to be the only ones", func(context.Context) error {
		var names []string
		for _, p := range s.pods() {
			names = append(names, p.Name)
		}
		if len(names) != 3 {
			return fmt.Errorf("there are pods %q", names)
		}
		return nil
	})
	s.expectObjects(`
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: another-storage-version-migrator}, status: {readyReplicas: 1}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: another-cluster-migration}, status: {readyReplicas: 1}}
- {apiVersion: v1, kind: Pod, metadata: {labels: {app.kubernetes.io/component: revision-upgrader}}, spec: {priority: 2000, nodeSelector: {kubernetes.io/arch: ARCH}}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: another-storage-version-migrator}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: [list, patch]}]}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: another-view}}
`)
	for kind, apiVersion := range map[string]string{
		"PodDisruptionBudget": "policy/v1", "NetworkPolicy": "networking.k8s.io/v1",
		"ServiceMonitor": monitoringVersion, "PodMonitor": monitoringVersion, "PrometheusRule": monitoringVersion,
	} {
		left := &unstructured.UnstructuredList{}
		left.SetAPIVersion(apiVersion)
		left.SetKind(kind + "List")
		if err := s.List(s.t.Context(), left, client.InNamespace(s.namespace)); err != nil || len(left.Items) > 0 {
			s.t.Errorf("%d objects of kind %s are left, which are off: %v", len(left.Items), kind, err)
		}
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "another-migration-creator"}}
	s.expectGone(policy, "clusterMigration.creatorPolicy is off")
}

// installMonitors installs the CRDs of the Prometheus operator.
func (s *stage) installMonitors() {
	s.t.Helper()
	s.installFrom(prometheusOperator, "example/prometheus-operator-crd",
		"monitoring.coreos.com_podmonitors.yaml", "monitoring.coreos.com_servicemonitors.yaml", "monitoring.coreos.com_prometheusrules.yaml")
}

// installFrom installs CRDs of a module, unless a test has.
func (s *stage) installFrom(module, folder string, files ...string) {
	s.t.Helper()
	dir, err := gomodule.Dir(s.t.Context(), module)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(dir, folder, name))
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
