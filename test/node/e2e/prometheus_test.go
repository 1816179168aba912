package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/test/node"
	"github.com/godwit-dev/godwit/test/policy"
)

const (
	monitoring = "monitoring"
	// metricsHost is the name in the certificate, as the chart documents it.
	metricsHost = "godwit-metrics." + system + ".svc"
)

// TestPrometheus: Prometheus runs as a pod, finds all pods of the manager by the ServiceMonitor, verifies their certificates and
// authenticates by the token of its own pod. An alert of the chart fires about a migration of which a policy denies some writes, and ends
// when the policy is gone. The Prometheus operator does not run: the test writes the configuration from the ServiceMonitor and the
// PrometheusRule as that operator does, and gives the alerts a shorter time.
func TestPrometheus(t *testing.T) {
	s := newStage(t, version)
	s.installMonitors()
	s.loadPrometheus()
	s.makeSecret("metrics-tls", certify(t, metricsHost))
	g := s.define("prometheus.example.com", 400)
	s.install(version, merged(quick(g), map[string]any{"operator": map[string]any{"replicas": 2}, "metrics": map[string]any{
		"tls":            map[string]any{"secretName": "metrics-tls"},
		"serviceMonitor": map[string]any{"enabled": true, "interval": "2s", "serviceAccount": map[string]any{"name": "prometheus", "namespace": monitoring}},
		"prometheusRule": map[string]any{"enabled": true},
	}}))
	s.startPrometheus()
	s.awaitSeries(`count(up{namespace="` + system + `",job="godwit-metrics"} == 1) == 2`)
	s.expectNoSeries(`ALERTS{alertname="GodwitMigrationStalled",name="` + g.crd() + `"}`)

	g.flip()
	g.awaitUnderWay()
	lasting := g.denyLast()
	g.expectUnderWay()
	stalled := `ALERTS{alertname="GodwitMigrationStalled",alertstate="firing",name="` + g.crd() + `",reason="ObjectsFailed"}`
	s.awaitSeries(stalled)
	s.awaitSeries(`ALERTS{alertname="GodwitObjectsFailed",alertstate="firing",crd="` + g.crd() + `"}`)
	s.awaitSeries(fmt.Sprintf(`sum(godwit_crd_objects_total{crd=%q,outcome="failed"}) >= %d`, g.crd(), len(lasting.Names)))
	s.awaitSeries(fmt.Sprintf(`sum(godwit_crd_objects_total{crd=%q,outcome="migrated"}) == %d`, g.crd(), len(g.written)-len(lasting.Names)))
	s.expectNoSeries(`ALERTS{alertname=~"GodwitAbsent|GodwitDown|GodwitNoLeader"}`)

	if err := lasting.Delete(t.Context(), s.Clients); err != nil {
		t.Fatal(err)
	}
	g.awaitMigrated()
	s.await("the alert about the migration to end", func(context.Context) error {
		if found, err := s.series(stalled); err != nil || found > 0 {
			return fmt.Errorf("%d alerts fire: %w", found, err)
		}
		return nil
	})
	s.awaitSeries(fmt.Sprintf(`sum(godwit_crd_objects_total{crd=%q,outcome="migrated"}) == %d`, g.crd(), len(g.written)))
}

// denyLast returns a policy that denies writes of the ten objects which the manager visits last, when the API server enforces it.
func (g *geese) denyLast() policy.Policy {
	g.s.t.Helper()
	names := slices.Sorted(maps.Keys(g.written))
	p := policy.Policy{
		Name: "deny-last", Group: g.group, Resource: "geese", Names: names[len(names)-10:],
		Validations: []admissionv1.Validation{{Expression: "false", Message: "these geese sleep"}},
	}
	if err := p.Create(g.s.t.Context(), g.s.Clients); err != nil {
		g.s.t.Fatal(err)
	}
	last := &unstructured.Unstructured{}
	last.SetAPIVersion(g.group + "/v2")
	last.SetKind("Goose")
	last.SetNamespace(metav1.NamespaceDefault)
	last.SetName(names[len(names)-1])
	err := policy.Await(g.s.t.Context(), true, func(ctx context.Context) error {
		return g.s.Patch(ctx, last.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"tried":"yes"}}}`)), client.DryRunAll)
	})
	if err != nil {
		g.s.t.Fatal(err)
	}
	return p
}

// loadPrometheus makes the namespace of Prometheus, and its image known.
func (s *stage) loadPrometheus() {
	s.t.Helper()
	image, err := node.ImageOf(s.t.Context(), "prometheus")
	if err == nil {
		err = s.Load(s.t.Context(), image)
	}
	if err == nil {
		err = s.AwaitNamespace(s.t.Context(), monitoring, restricted)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// startPrometheus configures Prometheus as the Prometheus operator does for the ServiceMonitor and the PrometheusRule of the chart.
func (s *stage) startPrometheus() {
	s.t.Helper()
	endpoint := s.endpoint("ServiceMonitor", "godwit-metrics", "endpoints")
	ca, serverName := s.verification(endpoint)
	config := map[string]any{
		"global":     map[string]any{"evaluation_interval": "1s"},
		"rule_files": []string{"/etc/prometheus/rules.yaml"},
		"scrape_configs": []any{map[string]any{
			"job_name": "godwit", "scheme": endpoint["scheme"], "scrape_interval": endpoint["interval"], "scrape_timeout": endpoint["interval"],
			"authorization":         map[string]any{"credentials_file": endpoint["bearerTokenFile"]},
			"tls_config":            map[string]any{"ca_file": "/etc/prometheus/ca.crt", "server_name": serverName},
			"kubernetes_sd_configs": []any{map[string]any{"role": "endpointslice", "namespaces": map[string]any{"names": []string{s.namespace}}}},
			"relabel_configs":       relabeling(s.object(monitoringVersion, "ServiceMonitor", "godwit-metrics"), endpoint),
		}},
	}
	files := map[string]string{"ca.crt": ca}
	for name, content := range map[string]any{"prometheus.yaml": config, "rules.yaml": s.object(monitoringVersion, "PrometheusRule", "godwit")["spec"]} {
		text, err := yaml.Marshal(content)
		if err != nil {
			s.t.Fatal(err)
		}
		files[name] = regexp.MustCompile(`\bfor: \w+`).ReplaceAllString(string(text), "for: 2s") // promtool tests the times
	}
	account := metav1.ObjectMeta{Namespace: monitoring, Name: "prometheus"}
	reader := metav1.ObjectMeta{Namespace: s.namespace, Name: "prometheus"}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: account}, &corev1.ConfigMap{ObjectMeta: account, Data: files},
		&rbacv1.Role{ObjectMeta: reader, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"services", "pods"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"get", "list", "watch"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: reader, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: reader.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}},
		},
		prometheusPod(account),
	} {
		if err := s.Create(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := s.AwaitPod(s.t.Context(), monitoring, "prometheus", "to run", node.Running); err != nil {
		s.t.Fatal(err)
	}
}

// relabeling keeps, of all endpoints that Prometheus discovers, those of the Services that a ServiceMonitor selects, at the port of its
// endpoint. It gives their series the labels by which alerts find them.
func relabeling(monitor, endpoint map[string]any) []any {
	var rules []any
	keep := func(label string, value any) {
		rules = append(rules, map[string]any{"action": "keep", "source_labels": []string{label}, "regex": regexp.QuoteMeta(fmt.Sprint(value))})
	}
	selected, _, _ := unstructured.NestedStringMap(monitor, "spec", "selector", "matchLabels")
	for name, value := range selected {
		keep("__meta_kubernetes_service_label_"+regexp.MustCompile(`\W`).ReplaceAllString(name, "_"), value)
	}
	keep("__meta_kubernetes_endpointslice_port_name", endpoint["port"])
	for label, source := range map[string]string{
		"namespace": "namespace", "pod": "pod_name", "container": "pod_container_name", "service": "service_name", "job": "service_name",
	} {
		rules = append(rules, map[string]any{"target_label": label, "source_labels": []string{"__meta_kubernetes_" + source}})
	}
	return rules
}

func prometheusPod(meta metav1.ObjectMeta) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			ServiceAccountName: meta.Name,
			SecurityContext:    restrictedPod(),
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: meta.Name}}}},
				{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
			Containers: []corev1.Container{{
				Name: "prometheus", Image: "localhost/prometheus:latest", ImagePullPolicy: corev1.PullNever,
				Args:            []string{"--config.file=/etc/prometheus/prometheus.yaml", "--storage.tsdb.path=/data", "--web.listen-address=:9090"},
				VolumeMounts:    []corev1.VolumeMount{{Name: "config", MountPath: "/etc/prometheus"}, {Name: "data", MountPath: "/data"}},
				SecurityContext: restrictedContainer(),
			}},
		},
	}
}

// series returns how many series Prometheus finds. The API server leads the request to the pod.
func (s *stage) series(query string) (int, error) {
	s.t.Helper()
	answer, err := s.Clients.CoreV1().RESTClient().Get().Namespace(monitoring).Resource("pods").Name("prometheus:9090").SubResource("proxy").
		Suffix("api/v1/query").Param("query", query).DoRaw(s.t.Context())
	if err != nil {
		return 0, fmt.Errorf("query %s: %w: %s", query, err, answer)
	}
	var result struct {
		Status string `json:"status"`
		Data   struct {
			Result []json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &result); err != nil {
		return 0, fmt.Errorf("query %s: %w", query, err)
	}
	if result.Status != "success" {
		return 0, fmt.Errorf("query %s: Prometheus answers %s", query, answer)
	}
	return len(result.Data.Result), nil
}

// awaitSeries waits until Prometheus finds series.
func (s *stage) awaitSeries(query string) {
	s.t.Helper()
	s.await("series of "+query, func(context.Context) error {
		found, err := s.series(query)
		if err == nil && found == 0 {
			err = errors.New(query + " finds nothing")
		}
		return err
	})
}

// expectNoSeries fails if Prometheus finds series, or does not answer.
func (s *stage) expectNoSeries(query string) {
	s.t.Helper()
	if found, err := s.series(query); err != nil || found > 0 {
		s.t.Errorf("%s finds %d series, want none: %v", query, found, err)
	}
}
