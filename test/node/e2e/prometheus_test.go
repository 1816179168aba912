package e2e_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/test/node"
)

const (
	monitoring = "monitoring"
	// metricsHost is the name in the certificate, as the chart documents it.
	metricsHost = "godwit-metrics." + system + ".svc"
)

// TestPrometheus: Prometheus runs as a pod, verifies the certificate of the manager, authenticates by the token of its own pod, and an
// alert of the chart fires about a migration that stalls. Nothing but the time of the alerts is other than users have it.
func TestPrometheus(t *testing.T) {
	s := newStage(t, version)
	s.installMonitors()
	image, err := node.ImageOf(t.Context(), "prometheus")
	if err == nil {
		err = s.Load(t.Context(), image)
	}
	if err == nil {
		err = s.AwaitNamespace(t.Context(), monitoring, restricted)
	}
	if err != nil {
		t.Fatal(err)
	}
	ca := s.issueMetricsCertificate("metrics-tls")
	g := s.define("prometheus.example.com", 10)
	s.install(version, merged(quick(g), map[string]any{"metrics": map[string]any{
		"tls":            map[string]any{"secretName": "metrics-tls"},
		"serviceMonitor": map[string]any{"enabled": true, "serviceAccount": map[string]any{"name": "prometheus", "namespace": monitoring}},
		"prometheusRule": map[string]any{"enabled": true},
	}}))
	s.startPrometheus(ca)
	s.await("the scrape of the manager", func(context.Context) error {
		return s.expectSeries(`up == 1`)
	})
	g.flip()
	g.awaitMigrated()
	s.await("the count of migrated objects", func(context.Context) error {
		return s.expectSeries(`godwit_crd_objects_total{crd="` + g.crd() + `",outcome="migrated"} == 10`)
	})
	stalled := &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: "missing.prometheus.example.com"}}
	if err := s.Create(t.Context(), stalled); err != nil {
		t.Fatal(err)
	}
	s.await("the alert about the migration that stalls", func(context.Context) error {
		return s.expectSeries(`ALERTS{alertname="GodwitMigrationStalled",alertstate="firing",name="` + stalled.Name + `"}`)
	})
	if err := s.expectSeries(`ALERTS{alertname="GodwitAbsent"}`); err == nil {
		t.Error("an alert says that the manager is absent, and Prometheus scrapes it")
	}
	if err := s.Delete(t.Context(), stalled); err != nil {
		t.Error(err)
	}
}

// issueMetricsCertificate writes the Secret of metrics.tls.secretName, and returns its CA.
func (s *stage) issueMetricsCertificate(secret string) string {
	s.t.Helper()
	certificates, key, err := cert.GenerateSelfSignedCertKey(metricsHost, nil, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest := pem.Decode(certificates) // the certificate, and then the CA that has signed it
	err = s.Create(s.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: secret}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"tls.crt": certificates, "tls.key": key, "ca.crt": rest},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(rest)
}

// startPrometheus configures Prometheus as the Prometheus operator does for the ServiceMonitor and the PrometheusRule of the chart.
func (s *stage) startPrometheus(ca string) {
	s.t.Helper()
	monitor, rules := s.monitoringObject("ServiceMonitor", "godwit-metrics"), s.monitoringObject("PrometheusRule", "godwit")
	endpoints, _, err := unstructured.NestedSlice(monitor, "spec", "endpoints")
	if err != nil || len(endpoints) != 1 {
		s.t.Fatalf("the ServiceMonitor is %v: %v", monitor, err)
	}
	endpoint, _ := endpoints[0].(map[string]any)
	serverName, _, _ := unstructured.NestedString(endpoint, "tlsConfig", "serverName")
	if serverName != metricsHost {
		s.t.Errorf("the ServiceMonitor verifies the name %q, want %q", serverName, metricsHost)
	}
	pod := s.pods()[0]
	config := map[string]any{
		"global":     map[string]any{"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"},
		"rule_files": []string{"/etc/prometheus/rules.yaml"},
		"scrape_configs": []any{map[string]any{
			"job_name": "godwit", "scheme": endpoint["scheme"], "authorization": map[string]any{"credentials_file": endpoint["bearerTokenFile"]},
			"tls_config": map[string]any{"ca_file": "/etc/prometheus/ca.crt", "server_name": serverName},
			"static_configs": []any{map[string]any{
				"targets": []string{net.JoinHostPort(pod.Status.PodIP, "8443")}, "labels": map[string]string{"namespace": system, "pod": pod.Name},
			}},
		}},
	}
	files := map[string]string{"ca.crt": ca}
	for name, content := range map[string]any{"prometheus.yaml": config, "rules.yaml": rules["spec"]} {
		text, err := yaml.Marshal(content)
		if err != nil {
			s.t.Fatal(err)
		}
		files[name] = regexp.MustCompile(`\bfor: \w+`).ReplaceAllString(string(text), "for: 2s") // promtool tests the times
	}
	meta := metav1.ObjectMeta{Namespace: monitoring, Name: "prometheus"}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta}, &corev1.ConfigMap{ObjectMeta: meta, Data: files}, prometheusPod(meta),
	} {
		if err := s.Create(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := s.AwaitPod(s.t.Context(), monitoring, "prometheus", "to run", node.Running); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) monitoringObject(kind, name string) map[string]any {
	s.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("monitoring.coreos.com/v1")
	o.SetKind(kind)
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: system, Name: name}, o); err != nil {
		s.t.Fatal(err)
	}
	return o.Object
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

// expectSeries returns an error unless Prometheus finds series. The API server leads the request to the pod.
func (s *stage) expectSeries(query string) error {
	s.t.Helper()
	answer, err := s.Clients.CoreV1().RESTClient().Get().Namespace(monitoring).Resource("pods").Name("prometheus:9090").SubResource("proxy").
		Suffix("api/v1/query").Param("query", query).DoRaw(s.t.Context())
	if err != nil {
		return fmt.Errorf("query %s: %w", query, err)
	}
	var result struct {
		Data struct {
			Result []json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &result); err != nil {
		return err
	}
	if len(result.Data.Result) == 0 {
		return errors.New(query + " finds nothing")
	}
	return nil
}
