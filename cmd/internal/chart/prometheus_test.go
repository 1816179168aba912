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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/test/process"
)

// TestPrometheus: a real Prometheus scrapes a real process of each feature as the ServiceMonitors say, while each works. Each query of
// the dashboard finds series, alerts fire about what is wrong, and a scrape that fails is seen.
func TestPrometheus(t *testing.T) {
	program := prometheusProgram(t, "prometheus")
	m := newMonitored(t)
	m.install()
	m.enroll()
	dir := t.TempDir()
	var files []string
	var rules []alertRule
	for _, r := range []release{m.manager, m.hubs} {
		some, file := rulesOf(t, r.rendered)
		files, rules = append(files, r.namespace+".yaml"), append(rules, some...)
		write(t, filepath.Join(dir, r.namespace+".yaml"), regexp.MustCompile(`for: \w+`).ReplaceAll(file, []byte("for: 2s"))) // promtool tests the times
	}
	p := startPrometheus(t, program, dir, files, m.scrapes())

	// Prometheus sees how counters begin.
	await(t, "the first scrapes", func() bool {
		return len(p.query(t, `up == 1`)) == 4 && len(p.query(t, `godwit_cluster_migration_messages_refused_total{hub="`+testHub+`"}`)) > 0
	})
	began := time.Now()
	denied, forbidden, unscoped := m.migrateCRDs()
	m.upgradeRevisions("shop")
	m.moveClusters("east")
	m.forge()

	t.Run("queries of the dashboard", func(t *testing.T) {
		for _, panel := range panels(t, m.manager.rendered) {
			for _, target := range panel.Targets {
				p.mustFind(t, panel, target.Expr, began)
			}
		}
	})
	t.Run("metrics of alerts", func(t *testing.T) {
		exported := p.exported(t)
		for _, r := range rules {
			mustExist(t, r.Alert, r.Expr, exported)
		}
	})
	t.Run("scrapes that fail", func(t *testing.T) {
		for pod, want := range map[string]string{"good": "", "stranger": "403", "anonymous": "401", "forged": "500", "other-ca": "x509: certificate signed by unknown authority"} {
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
		for name, of := range map[string][3]string{
			"GodwitMigrationStalled":        {"name", missingCRD, "/events.md#crdmigration-crdnotfound"},
			"GodwitMigrationBlocked":        {"crd", forbidden, "/events.md#crd-"},
			"GodwitObjectsFailed":           {"crd", denied, "/events.md#crdmigration-objectsfailed"},
			"GodwitCRDNotMigrated":          {"crd", denied, "/alerts.md#godwitcrdnotmigrated"},
			"GodwitCRDOutOfScope":           {"crd", unscoped, "/alerts.md#godwitcrdoutofscope"},
			"GodwitRevisionUpgradesStalled": {"object_namespace", "shop", "/events.md#controllerrevision-"},
			"GodwitClusterMigrationStalled": {"name", "east", "/events.md#managedclustermigration-"},
			"GodwitHubMessagesRefused":      {"hub", testHub, "/alerts.md#godwithubmessagesrefused"},
		} {
			await(t, name, func() bool { return p.alert(name, of[0], of[1]) != nil })
			if fired := p.alert(name, of[0], of[1]); !strings.Contains(fired["description"], of[1]) || !strings.Contains(fired["runbook_url"], of[2]) {
				t.Errorf("%s says %v, want %s, and a runbook with %s", name, fired, of[1], of[2])
			}
		}
		for _, lease := range []string{"godwit-storage-version-migrator", "godwit-revision-upgrader", "godwit-cluster-migration", "godwit-agent"} {
			if absent := p.alert("GodwitAbsent", "name", lease); absent != nil {
				t.Errorf("%s is scraped, and an alert says that it is absent: %v", lease, absent)
			}
		}
	})
	m.manager.processes["storage-version-migrator"].end()
	await(t, "GodwitAbsent after the end of the manager", func() bool {
		return p.alert("GodwitAbsent", "name", "godwit-storage-version-migrator") != nil
	})
	if n := p.failedRules(t); len(n) > 0 {
		t.Errorf("rules that Prometheus can't evaluate: %v, of %d", n, len(rules))
	}
}

// scrapes are a target for each process, and four that scrape the migrator of storage versions in a wrong way. They are named as pods.
func (m *monitored) scrapes() map[string]scrape {
	m.t.Helper()
	all := map[string]scrape{}
	reader := m.as(managersNamespace, "prometheus").BearerToken
	for _, r := range []release{m.manager, m.hubs} {
		for component, process := range r.processes {
			all[r.pods(component)+"-good"] = scrape{
				namespace: r.namespace, address: process.addresses["metrics"], token: reader, ca: r.certificates["ca.crt"], endpoint: serviceMonitor(m.t, r.rendered),
			}
		}
	}
	const prefix = "godwit-storage-version-migrator-"
	wrong := func(name string, change func(*scrape)) {
		s := all[prefix+"good"]
		change(&s)
		all[prefix+name] = s
	}
	wrong("stranger", func(s *scrape) { s.token = m.as(managersNamespace, "stranger").BearerToken })
	wrong("anonymous", func(s *scrape) { s.token = "" })
	wrong("forged", func(s *scrape) { s.token = "forged" })
	wrong("other-ca", func(s *scrape) { s.ca = guideCertificate(m.t, m.manager.host())["ca.crt"] })
	return all
}

// scrape is how a target is scraped.
type scrape struct {
	namespace, address, token string
	ca                        []byte
	endpoint                  map[string]any // of the ServiceMonitor
}

// prometheus is a server.
type prometheus struct {
	t   *testing.T
	url string
}

// startPrometheus configures it as the Prometheus operator does for endpoints of ServiceMonitors. The targets are named as pods.
func startPrometheus(t *testing.T, program, dir string, rules []string, targets map[string]scrape) *prometheus {
	t.Helper()
	var jobs []any
	for pod, s := range targets {
		token, ca := filepath.Join(dir, pod+".token"), filepath.Join(dir, pod+".crt")
		serverName, _, _ := unstructured.NestedString(s.endpoint, "tlsConfig", "serverName")
		if serverName == "" || s.endpoint["scheme"] != "https" || s.endpoint["bearerTokenFile"] == nil {
			t.Fatalf("the ServiceMonitor is %v", s.endpoint)
		}
		write(t, token, []byte(s.token))
		write(t, ca, s.ca)
		jobs = append(jobs, map[string]any{
			"job_name": pod, "scheme": s.endpoint["scheme"], "tls_config": map[string]any{"ca_file": ca, "server_name": serverName},
			"authorization":  map[string]any{"credentials_file": token},
			"static_configs": []any{map[string]any{"targets": []string{s.address}, "labels": map[string]string{"namespace": s.namespace, "pod": pod}}},
		})
	}
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"},
		"rule_files": rules, "scrape_configs": jobs,
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

// query returns the series of a query at this moment.
func (p *prometheus) query(t *testing.T, query string) []json.RawMessage {
	t.Helper()
	var found struct{ Result []json.RawMessage }
	if err := p.api("/api/v1/query?query="+url.QueryEscape(query), &found); err != nil {
		t.Fatal(err)
	}
	return found.Result
}

// exported are the names of all metrics.
func (p *prometheus) exported(t *testing.T) map[string]bool {
	t.Helper()
	var names []string
	if err := p.api("/api/v1/label/__name__/values", &names); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	return known
}

// mustFind awaits a number for a query of the dashboard since a time, in steps as a panel has them.
func (p *prometheus) mustFind(t *testing.T, of panel, query string, since time.Time) {
	t.Helper()
	if err := process.Poll(t.Context(), "a number of "+of.Title+": "+query, func(context.Context) error {
		var found struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
		times := fmt.Sprintf("&start=%d&end=%d&step=1", since.Unix(), time.Now().Unix())
		if err := p.api("/api/v1/query_range?query="+url.QueryEscape(strings.ReplaceAll(query, "$__rate_interval", "10s"))+times, &found); err != nil {
			return err
		}
		for _, series := range found.Result {
			if slices.ContainsFunc(series.Values, func(v [2]any) bool { return v[1] != "NaN" }) {
				t.Logf("%s: %d series, as %v, of %s", of.Title, len(found.Result), series.Metric, query)
				return nil
			}
		}
		return errNotYet
	}); err != nil {
		t.Error(err)
	}
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
