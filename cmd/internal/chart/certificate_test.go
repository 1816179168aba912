//go:build linux

package chart_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/test/controlplane"
)

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
	first := guideCertificate(t, "godwit-metrics."+namespace+".svc")
	c.secret(namespace, "godwit-metrics-tls", first)
	m := c.start(namespace, rendered)
	binding := find[rbacv1.ClusterRoleBinding](t, named(rendered, "godwit-metrics-prometheus"), "ClusterRoleBinding")
	token := c.as(namespace, binding.Subjects[0].Name).BearerToken
	host := serviceMonitor(t, rendered)["tlsConfig"].(map[string]any)["serverName"].(string)
	scraped := func(ca []byte) error { return m.scrape(host, token, ca) }
	await(t, "a scrape that verifies the certificate", func() bool { return scraped(first["ca.crt"]) == nil })
	if out := m.guideScrape(namespace, token, first["ca.crt"]); !strings.Contains(out, "\nleader_election_master_status{") {
		t.Errorf("the scrape of the guide finds no metrics:\n%s", out)
	}
	if err := c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stranger"}}); err != nil {
		t.Fatal(err)
	}
	for reason, wrong := range map[string]struct {
		token, want string
		ca          []byte
	}{
		"The ServiceAccount may not read metrics.": {c.as(namespace, "stranger").BearerToken, "Authorization denied for user system:serviceaccount:" + namespace + ":stranger", first["ca.crt"]},
		"There is no token.":                       {"", "Unauthorized", first["ca.crt"]},
		"The token is not one of the API server.":  {"forged", "Authentication failed", first["ca.crt"]},
		"The CA is another.":                       {token, "certificate", guideCertificate(t, host)["ca.crt"]},
	} {
		out := m.guideScrape(namespace, wrong.token, wrong.ca)
		if text := strings.TrimSpace(out); !strings.Contains(text, wrong.want) {
			t.Errorf("%s The scrape of the guide prints %q, want %q", reason, text, wrong.want)
		}
	}

	renewed := guideCertificate(t, "godwit-metrics."+namespace+".svc")
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

// guideScrape runs the command of the guide that scrapes, without the filter of its output, and returns what it prints.
func (m *manager) guideScrape(namespace, token string, ca []byte) string {
	m.t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		m.t.Skip("the command of the guide needs curl")
	}
	text, err := os.ReadFile(root + "/docs/guides/monitor.md")
	if err != nil {
		m.t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^\$ (curl (?:.*\\\n)*.*) \| grep \^leader_election$`).FindStringSubmatch(string(text))
	if line == nil {
		m.t.Fatal("the guide does not scrape")
	}
	dir := m.t.TempDir()
	write(m.t, filepath.Join(dir, "scrape-ca.crt"), ca)
	command := exec.CommandContext(m.t.Context(), "sh", "-c", strings.NewReplacer("NAMESPACE", namespace, "127.0.0.1:8443", m.addresses["metrics"]).Replace(line[1]))
	command.Dir, command.Env = dir, append(os.Environ(), "TOKEN="+token)
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out) + err.Error()
	}
	return string(out)
}

// guideCertificate runs the commands of the guide that make a CA and a certificate for a host, and returns the files.
func guideCertificate(t *testing.T, host string) map[string][]byte {
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
		command := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(line[1], "godwit-metrics.NAMESPACE.svc", host))
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
