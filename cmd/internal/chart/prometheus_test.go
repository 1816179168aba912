//go:build linux

package chart_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/process"
)

// TestPrometheus: a real Prometheus scrapes a real manager as the ServiceMonitor says, while a migration runs. Each query of the
// dashboard finds series, alerts fire about what is wrong, and a scrape that fails is seen.
func TestPrometheus(t *testing.T) {
	program := prometheusProgram(t, "prometheus")
	c := newCluster(t)
	const namespace, group, objects = "monitored", "monitored.example.com", 80
	c.restrictedNamespace(namespace)
	rendered := render(t, namespace, "storageVersionMigrator: {scopes: [{group: "+group+"}], defaults: {settle: 0s}}\n"+
		"metrics: {tls: {secretName: godwit-metrics-tls}, prometheusRule: {enabled: true}, dashboard: {enabled: true}, serviceMonitor: {enabled: true, serviceAccount: {name: prometheus}}}\n")
	c.apply(rendered)
	if err := controlplane.AwaitServed(t.Context(), c.cfg, "crdmigrations.godwit.dev"); err != nil {
		t.Fatal(err)
	}
	for _, account := range []string{"prometheus", "stranger"} {
		if err := c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}); err != nil {
			t.Fatal(err)
		}
	}
	certificates := guideCertificate(t, namespace)
	c.secret(namespace, "godwit-metrics-tls", certificates)

	crd, other := c.define(group, objects), c.define("unscoped.example.com", 1)
	m := c.start(namespace, withoutDashboard(rendered))
	await(t, "the manager to be ready", func() bool {
		code, _ := get("http://"+m.addresses["health"]+m.ready, "")
		return code == http.StatusOK
	})

	dir := t.TempDir()
	rules, file := rulesOf(t, rendered)
	write(t, filepath.Join(dir, "rules.yaml"), regexp.MustCompile(`for: \w+`).ReplaceAll(file, []byte("for: 2s"))) // the times are tested by promtool
	reader := c.as(namespace, "prometheus").BearerToken
	stranger := c.as(namespace, "stranger").BearerToken
	p := startPrometheus(t, program, dir, serviceMonitor(t, rendered), map[string]scrape{
		"godwit-storage-version-migrator-good":     {m.addresses["metrics"], reader, certificates["ca.crt"]},
		"godwit-storage-version-migrator-stranger": {m.addresses["metrics"], stranger, certificates["ca.crt"]},
		"godwit-storage-version-migrator-forged":   {m.addresses["metrics"], "forged", certificates["ca.crt"]},
		"godwit-storage-version-migrator-other-ca": {m.addresses["metrics"], reader, guideCertificate(t, namespace)["ca.crt"]},
	})

	c.flip(other)
	c.flip(crd)
	// A migration that needs user action: there is no such CRD.
	missing := &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: "missing." + group}}
	if err := c.Create(t.Context(), missing); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.Background(), missing) })

	t.Run("queries of the dashboard", func(t *testing.T) {
		for _, panel := range panels(t, rendered) {
			for _, target := range panel.Targets {
				p.mustFind(t, panel, target.Expr)
			}
		}
	})
	t.Run("scrapes that fail", func(t *testing.T) {
		for pod, want := range map[string]string{"good": "", "stranger": "403", "forged": "401", "other-ca": "x509: certificate signed by unknown authority"} {
			pod = "godwit-storage-version-migrator-" + pod
			down := p.alert("GodwitDown", "pod", pod)
			if said := p.lastError(t, pod); want == "" && said != "" || !strings.Contains(said, want) {
				t.Errorf("the scrape of %s ended with %q, want %q", pod, said, want)
			}
			if want == "" {
				if down != nil {
					t.Errorf("%s is scraped, and the alert fires: %v", pod, down)
				}
				continue
			}
			await(t, "GodwitDown about "+pod, func() bool { return p.alert("GodwitDown", "pod", pod) != nil })
		}
	})
	t.Run("alerts", func(t *testing.T) {
		for name, object := range map[string][2]string{
			"GodwitMigrationStalled": {"name", missing.Name}, "GodwitCRDOutOfScope": {"crd", other},
		} {
			await(t, name, func() bool { return p.alert(name, object[0], object[1]) != nil })
		}
		stalled := p.alert("GodwitMigrationStalled", "name", missing.Name)
		if !strings.Contains(stalled["description"], "kubectl describe crdm "+missing.Name) || !strings.HasSuffix(stalled["runbook_url"], "/events.md#crdmigration-crdnotfound") {
			t.Errorf("the alert says %v", stalled)
		}
		if absent := p.alert("GodwitAbsent", "", ""); absent != nil {
			t.Errorf("the manager is scraped, and an alert says that it is absent: %v", absent)
		}
	})
	m.end()
	await(t, "GodwitAbsent after the end of the manager", func() bool { return p.alert("GodwitAbsent", "", "") != nil })
	if n := p.failedRules(t); len(n) > 0 {
		t.Errorf("rules that Prometheus can't evaluate: %v, of %d", n, len(rules))
	}
}

// withoutDashboard has the one ConfigMap that the pod mounts.
func withoutDashboard(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return strings.HasSuffix(o.GetName(), "-dashboard") })
}

// guideCertificate runs the commands of the guide that make a CA and a certificate, and returns the files.
func guideCertificate(t *testing.T, namespace string) map[string][]byte {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("the commands of the guide need openssl")
	}
	text, err := os.ReadFile(root + "/docs/guides/monitor.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	commands := regexp.MustCompile(`(?m)^\$ (openssl (?:.*\\\n)*.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(commands) != 3 {
		t.Fatalf("the guide has %d commands of openssl, want 3", len(commands))
	}
	for _, line := range commands {
		command := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(line[1], "NAMESPACE", namespace))
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line[1], err, out)
		}
	}
	files := map[string][]byte{}
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func (c *cluster) secret(namespace, name string, data map[string][]byte) {
	c.t.Helper()
	err := c.Create(c.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeTLS, Data: data})
	if err != nil {
		c.t.Fatal(err)
	}
}

// serviceMonitor is the one endpoint of the ServiceMonitor.
func serviceMonitor(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == "ServiceMonitor" {
			endpoints, _, err := unstructured.NestedSlice(o.Object, "spec", "endpoints")
			if err != nil || len(endpoints) != 1 {
				t.Fatalf("%v, %v", endpoints, err)
			}
			return endpoints[0].(map[string]any)
		}
	}
	t.Fatal("there is no ServiceMonitor")
	return nil
}

// scrape is how a target is scraped.
type scrape struct {
	address, token string
	ca             []byte
}

// prometheus is a server.
type prometheus struct {
	t   *testing.T
	url string
}

// startPrometheus configures it as the Prometheus operator does for an endpoint of a ServiceMonitor. The targets are named as pods.
func startPrometheus(t *testing.T, program, dir string, endpoint map[string]any, targets map[string]scrape) *prometheus {
	t.Helper()
	serverName, _, _ := unstructured.NestedString(endpoint, "tlsConfig", "serverName")
	if serverName == "" || endpoint["scheme"] != "https" || endpoint["bearerTokenFile"] == nil {
		t.Fatalf("the ServiceMonitor is %v", endpoint)
	}
	var jobs []any
	for pod, s := range targets {
		token, ca := filepath.Join(dir, pod+".token"), filepath.Join(dir, pod+".crt")
		write(t, token, []byte(s.token))
		write(t, ca, s.ca)
		jobs = append(jobs, map[string]any{
			"job_name": pod, "scheme": endpoint["scheme"], "tls_config": map[string]any{"ca_file": ca, "server_name": serverName},
			"authorization":  map[string]any{"credentials_file": token},
			"static_configs": []any{map[string]any{"targets": []string{s.address}, "labels": map[string]string{"namespace": "monitored", "pod": pod}}},
		})
	}
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{"rules.yaml"}, "scrape_configs": jobs,
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "prometheus.yaml"), config)
	address := freeAddress(t)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	command := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	command.Stdout, command.Stderr, command.Dir = log, log, dir
	server, err := process.Start("prometheus", command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	p := &prometheus{t: t, url: "http://" + address}
	err = server.Await(t.Context(), "prometheus to be ready", func(context.Context) error {
		if code, text := get(p.url+"/-/ready", ""); code != http.StatusOK {
			return errors.New(text)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v%s", err, process.Tail(log.Name()))
	}
	return p
}

// api reads the data of an answer.
func (p *prometheus) api(path string, into any) error {
	answer, err := http.Get(p.url + path)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	var body struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return fmt.Errorf("%s: %w: %s", path, err, text)
	}
	if body.Status != "success" {
		return fmt.Errorf("%s: %s", path, body.Error)
	}
	return json.Unmarshal(body.Data, into)
}

// mustFind awaits a series for a query, unless the panel says until when it is empty.
func (p *prometheus) mustFind(t *testing.T, of panel, query string) {
	t.Helper()
	var found struct{ Result []json.RawMessage }
	var err error
	path := "/api/v1/query?query=" + url.QueryEscape(strings.ReplaceAll(query, "$__rate_interval", "10s"))
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if err = p.api(path, &found); err == nil && (len(found.Result) > 0 || strings.Contains(of.Description, "Empty until")) {
			t.Logf("%s: %d series of %s", of.Title, len(found.Result), query)
			return
		}
	}
	t.Errorf("%s: no series in 60 s, and the description does not say until when it is empty: %s: %v", of.Title, query, err)
}

// alert returns the annotations of an alert that fires, about an object that a label names; nil if there is none.
func (p *prometheus) alert(name, label, object string) map[string]string {
	var found struct {
		Alerts []struct {
			Labels, Annotations map[string]string
			State               string
		}
	}
	if err := p.api("/api/v1/alerts", &found); err != nil {
		p.t.Fatal(err)
	}
	for _, a := range found.Alerts {
		if a.State == "firing" && a.Labels["alertname"] == name && a.Labels[label] == object {
			return a.Annotations
		}
	}
	return nil
}

// lastError is why the scrape of a target failed; empty if it did not.
func (p *prometheus) lastError(t *testing.T, pod string) string {
	t.Helper()
	said := ""
	await(t, "the scrape of "+pod, func() bool {
		var found struct {
			ActiveTargets []struct {
				Labels            map[string]string
				LastError, Health string
			}
		}
		if err := p.api("/api/v1/targets", &found); err != nil {
			t.Fatal(err)
		}
		for _, target := range found.ActiveTargets {
			if target.Labels["pod"] == pod && target.Health != "unknown" {
				said = target.LastError
				return true
			}
		}
		return false
	})
	return said
}

// failedRules are the rules that could not be evaluated.
func (p *prometheus) failedRules(t *testing.T) (failed []string) {
	t.Helper()
	var found struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := p.api("/api/v1/rules", &found); err != nil {
		t.Fatal(err)
	}
	for _, g := range found.Groups {
		for _, r := range g.Rules {
			if r.Health == "err" {
				failed = append(failed, r.Name+": "+r.LastError)
			}
		}
	}
	return failed
}

// TestMetricsCertificate: the manager serves the certificate of the Secret, to Prometheus as the chart permits it, and loads a
// renewed one without a restart.
func TestMetricsCertificate(t *testing.T) {
	c := newCluster(t)
	const namespace = "certified"
	c.restrictedNamespace(namespace)
	rendered := render(t, namespace, "metrics: {tls: {secretName: godwit-metrics-tls}, serviceMonitor: {enabled: true, serviceAccount: {name: prometheus}}}\n")
	c.apply(rendered)
	if err := controlplane.AwaitServed(t.Context(), c.cfg, "crdmigrations.godwit.dev"); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prometheus"}}); err != nil {
		t.Fatal(err)
	}
	first := guideCertificate(t, namespace)
	c.secret(namespace, "godwit-metrics-tls", first)
	m := c.start(namespace, rendered)
	binding := find[rbacv1.ClusterRoleBinding](t, named(rendered, "godwit-metrics-prometheus"), "ClusterRoleBinding")
	token := c.as(namespace, binding.Subjects[0].Name).BearerToken
	host := serviceMonitor(t, rendered)["tlsConfig"].(map[string]any)["serverName"].(string)
	scraped := func(ca []byte) error { return m.scrape(host, token, ca) }
	await(t, "a scrape that verifies the certificate", func() bool { return scraped(first["ca.crt"]) == nil })

	renewed := guideCertificate(t, namespace)
	if err := scraped(renewed["ca.crt"]); err == nil || !strings.Contains(err.Error(), "x509") {
		t.Errorf("another CA verifies the certificate: %v", err)
	}
	for name, text := range renewed {
		if err := os.WriteFile(filepath.Join(m.image, "etc", "godwit-metrics", name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the renewed certificate", func() bool { return scraped(renewed["ca.crt"]) == nil })
}
