package chart_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/cmd/internal/reason"
)

// features are the values by which each feature is installed alone, with alerts, by component.
var features = map[string]string{
	"storage-version-migrator": "operator: {features: {storageVersionMigrator: true}}",
	"revision-upgrader":        "operator: {features: {storageVersionMigrator: false, revisionUpgrader: true}}",
	"cluster-migration":        "operator: {features: {storageVersionMigrator: false, clusterMigration: true}}\nclusterMigration: {kafka: {brokers: ['kafka:9092']}}",
	"hub-agent":                "operator: {features: {storageVersionMigrator: false, hubAgent: true}}\nhubAgent: {hub: hub1, managerKey: key, kafka: {brokers: ['kafka:9092']}}",
}

// alertRule is a rule of a PrometheusRule.
type alertRule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// rulesOf are the rules of the one PrometheusRule, and its spec as a file for Prometheus.
func rulesOf(t *testing.T, objects []*unstructured.Unstructured) (rules []alertRule, file []byte) {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != "PrometheusRule" {
			continue
		}
		file, err := yaml.Marshal(o.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		var spec struct{ Groups []struct{ Rules []alertRule } }
		if err := yaml.Unmarshal(file, &spec); err != nil {
			t.Fatal(err)
		}
		for _, g := range spec.Groups {
			rules = append(rules, g.Rules...)
		}
		return rules, file
	}
	t.Fatal("there is no PrometheusRule")
	return nil, nil
}

// TestAlerts: each alert names objects, has a severity and the address of a page that exists, and reads metrics that exist.
func TestAlerts(t *testing.T) {
	known := documentedMetrics(t)
	for component, values := range features {
		rules, _ := rulesOf(t, render(t, "godwit", values+"\nmetrics: {prometheusRule: {enabled: true}}\n"))
		if len(rules) < 6 {
			t.Errorf("%s: %d alerts, want those of the process and its own", component, len(rules))
		}
		for _, r := range rules {
			if r.Annotations["summary"] == "" || len(r.Annotations["description"]) < 50 || r.Labels["component"] != component ||
				!slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
				t.Errorf("%s of %s lacks something: %+v", r.Alert, component, r)
			}
			mustNameObject(t, r)
			mustLead(t, r)
			mustExist(t, r.Alert, r.Expr, known)
			if left := regexp.MustCompile(`NAMESPACE|\bNAME\b|COMPONENT|LEASE|RUNBOOKS`).FindString(fmt.Sprint(r)); left != "" {
				t.Errorf("%s has %s left: %+v", r.Alert, left, r)
			}
		}
	}
}

// mustNameObject: the description says which object, by a label that the expression keeps, or by a name that was rendered.
func mustNameObject(t *testing.T, r alertRule) {
	t.Helper()
	description := r.Annotations["description"]
	if !strings.Contains(description, "{{ $labels.") && !strings.Contains(description, "godwit-"+r.Labels["component"]) {
		t.Errorf("%s names no object: %s", r.Alert, description)
	}
	grouped := regexp.MustCompile(`\bby \(([^)]*)\)`).FindStringSubmatch(r.Expr)
	if grouped == nil {
		return
	}
	for _, used := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(fmt.Sprint(r.Annotations), -1) {
		if !slices.Contains(strings.Split(grouped[1], ", "), used[1]) {
			t.Errorf("%s names label %s, and its expression keeps %s", r.Alert, used[1], grouped[1])
		}
	}
}

// mustLead: the runbook is an anchor of docs/reference, for each reason that the link may have.
func mustLead(t *testing.T, r alertRule) {
	t.Helper()
	const base = "https://github.com/godwit-dev/godwit/blob/main/docs/reference/"
	page, anchor, ok := strings.Cut(strings.TrimPrefix(r.Annotations["runbook_url"], base), "#")
	if !ok || !strings.HasPrefix(r.Annotations["runbook_url"], base) {
		t.Errorf("%s has the runbook %q, want an anchor below %s", r.Alert, r.Annotations["runbook_url"], base)
		return
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "reference", page))
	if err != nil {
		t.Error(err)
		return
	}
	anchors := []string{anchor}
	if prefix, varies := strings.CutSuffix(anchor, "{{ $labels.reason | toLower }}"); varies {
		anchors = nil
		for _, g := range reason.Groups() {
			for _, r := range g.Reasons() {
				if strings.ToLower(string(g.Subject))+"-" == prefix {
					anchors = append(anchors, prefix+strings.ToLower(r.Name))
				}
			}
		}
		if len(anchors) == 0 {
			t.Errorf("%s: no reason has an anchor that begins with %s", r.Alert, prefix)
		}
	}
	for _, a := range anchors {
		if !slices.Contains(anchorsOf(string(text)), a) {
			t.Errorf("%s: %s has no anchor %s", r.Alert, page, a)
		}
	}
}

// anchorsOf are the anchors of a page: those that it names, and those that GitHub makes of headings.
func anchorsOf(page string) []string {
	var all []string
	for _, found := range regexp.MustCompile(`<a id="([^"]+)">`).FindAllStringSubmatch(page, -1) {
		all = append(all, found[1])
	}
	for _, found := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		all = append(all, strings.ReplaceAll(strings.ToLower(found[1]), " ", "-"))
	}
	return all
}

// fromOthers are metrics of Prometheus, and of every process that its Go library serves.
var fromOthers = []string{"up", "process_resident_memory_bytes"}

// documentedMetrics are those of docs/reference/metrics.md, with the series of histograms.
func documentedMetrics(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|( histogram)?").FindAllStringSubmatch(string(text), -1) {
		known[row[1]] = true
		if row[2] != "" {
			known[row[1]+"_bucket"] = true
		}
	}
	for _, name := range fromOthers {
		known[name] = true
	}
	return known
}

// metric finds the names of metrics in an expression: before a selector or a range, or in front of what follows a metric.
var metric = regexp.MustCompile(`\b[a-z]+(?:_[a-z]+)+\b(?:\{|\[|\)| and| ==| >|$)|\bup\{`)

func mustExist(t *testing.T, of, expression string, known map[string]bool) {
	t.Helper()
	bare := regexp.MustCompile(`by \([^)]*\)|on \([^)]*\)`).ReplaceAllString(expression, "")
	names := metric.FindAllString(bare, -1)
	if len(names) == 0 {
		t.Errorf("%s reads no metric: %s", of, expression)
	}
	for _, found := range names {
		if name := regexp.MustCompile(`^\w+`).FindString(found); !known[name] {
			t.Errorf("%s reads %s, which docs/reference/metrics.md does not have: %s", of, name, expression)
		}
	}
}

// panel is one of the dashboard.
type panel struct {
	ID                       int
	Type, Title, Description string
	Targets                  []struct{ Expr, LegendFormat string }
}

// panels are those of the dashboard in a ConfigMap.
func panels(t *testing.T, objects []*unstructured.Unstructured) []panel {
	t.Helper()
	var of *corev1.ConfigMap
	for _, o := range objects {
		if o.GetKind() == "ConfigMap" && strings.HasSuffix(o.GetName(), "-dashboard") {
			of = find[corev1.ConfigMap](t, []*unstructured.Unstructured{o}, "ConfigMap")
		}
	}
	if of == nil {
		t.Fatal("there is no dashboard")
	}
	if of.Labels["grafana_dashboard"] != "1" {
		t.Errorf("the sidecar of Grafana finds no dashboard by the labels %v", of.Labels)
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal([]byte(of.Data["godwit.json"]), &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard.Panels
}

func TestDashboard(t *testing.T) {
	known := documentedMetrics(t)
	queries, ids := 0, map[int]bool{}
	for _, p := range panels(t, render(t, "godwit", "metrics: {dashboard: {enabled: true}}")) {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("panel %d %q lacks something, or is there twice", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			mustExist(t, p.Title, target.Expr, known)
			queries++
		}
	}
	if queries < 20 {
		t.Errorf("the dashboard has %d queries", queries)
	}
}

// TestMonitoringIsOffByDefault, and each part has a switch of its own.
func TestMonitoringIsOffByDefault(t *testing.T) {
	kinds := func(values string) []string {
		var all []string
		for _, o := range render(t, "godwit", values) {
			if k := o.GetKind(); slices.Contains([]string{"Service", "ServiceMonitor", "PodMonitor", "PrometheusRule", "Certificate", "Issuer"}, k) ||
				strings.HasSuffix(o.GetName(), "-dashboard") || o.GetName() == "godwit-metrics-prometheus" {
				all = append(all, k)
			}
		}
		slices.Sort(all)
		return all
	}
	for values, want := range map[string][]string{
		"": nil,
		"metrics: {enabled: false, prometheusRule: {enabled: true}, dashboard: {enabled: true}}":                 nil,
		"metrics: {prometheusRule: {enabled: true}}":                                                             {"PrometheusRule"},
		"metrics: {dashboard: {enabled: true}}":                                                                  {"ConfigMap"},
		"metrics: {tls: {secretName: tls}}":                                                                      {"Service"},
		"metrics: {tls: {secretName: tls}, serviceMonitor: {enabled: true}}":                                     {"Service", "ServiceMonitor"},
		"metrics: {tls: {secretName: tls}, serviceMonitor: {enabled: true, serviceAccount: {name: prometheus}}}": {"ClusterRoleBinding", "Service", "ServiceMonitor"},
		"metrics: {tls: {certManager: {enabled: true, issuerRef: {name: ours, kind: ClusterIssuer}}}}":           {"Certificate", "Service"},
		"metrics: {tls: {certManager: {enabled: true}}, podMonitor: {enabled: true}}":                            {"Certificate", "Certificate", "Issuer", "Issuer", "PodMonitor", "Service"},
	} {
		if got := kinds(values); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", values, got, want)
		}
	}
	rules, _ := rulesOf(t, render(t, "godwit", "metrics: {prometheusRule: {enabled: true, disabled: [GodwitThrottled], alertLabels: {team: platform, severity: page}}}"))
	for _, r := range rules {
		if r.Alert == "GodwitThrottled" || r.Labels["team"] != "platform" || r.Labels["severity"] == "page" {
			t.Errorf("a rule is not as the values ask for: %+v", r)
		}
	}
}

// TestMonitorsVerifyAndKeepNoToken: with metrics.tls no monitor skips the verification, and the ServiceMonitor needs no Secret with
// a token.
func TestMonitorsVerifyAndKeepNoToken(t *testing.T) {
	out := mustHelm(t, "template", "godwit", chartDir, "--namespace=godwit", valuesFile(t, "metrics: {tls: {secretName: tls}, serviceMonitor: {enabled: true}}"))
	for _, bad := range []string{"insecureSkipVerify", "service-account-token"} {
		if strings.Contains(out, bad) {
			t.Errorf("the manifests have %s", bad)
		}
	}
	out = mustHelm(t, "template", "godwit", chartDir, "--namespace=godwit", valuesFile(t, "metrics: {tls: {secretName: tls, ca: {configMap: trust, key: bundle.crt}}, podMonitor: {enabled: true}}"))
	if strings.Contains(out, "insecureSkipVerify") || !strings.Contains(out, "configMap: {name: trust, key: bundle.crt}") ||
		!strings.Contains(out, "serverName: godwit-metrics.godwit.svc") || !strings.Contains(out, "--metrics-cert-dir=/etc/godwit-metrics") {
		t.Errorf("the PodMonitor does not verify the certificate:\n%s", out)
	}
}

// TestFeaturesHaveTheirOwnPods: what operator.overrides has for a feature, the other features do not have.
func TestFeaturesHaveTheirOwnPods(t *testing.T) {
	objects := render(t, "godwit", `operator:
  features: {revisionUpgrader: true}
  priorityClassName: low
  serviceAccountAnnotations: {cloud: all}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
  overrides:
    revisionUpgrader:
      resources: {limits: {memory: 1280Mi}}
      priorityClassName: high
      serviceAccountAnnotations: {cloud: own}
      topologySpreadConstraints: []
`)
	type pods struct {
		memory, priority, annotation string
		spread                       int
		counted                      string
	}
	got := map[string]pods{}
	for _, component := range []string{"storage-version-migrator", "revision-upgrader"} {
		of := named(objects, "godwit-"+component)
		pod := find[appsv1.Deployment](t, of, "Deployment").Spec.Template.Spec
		p := pods{
			memory: pod.Containers[0].Resources.Limits.Memory().String(), priority: pod.PriorityClassName,
			annotation: find[corev1.ServiceAccount](t, of, "ServiceAccount").Annotations["cloud"], spread: len(pod.TopologySpreadConstraints),
		}
		if p.spread > 0 {
			p.counted = pod.TopologySpreadConstraints[0].LabelSelector.MatchLabels["app.kubernetes.io/component"]
		}
		got[component] = p
	}
	want := map[string]pods{
		"storage-version-migrator": {"512Mi", "low", "all", 1, "storage-version-migrator"},
		"revision-upgrader":        {"1280Mi", "high", "own", 0, ""},
	}
	for component := range want {
		if got[component] != want[component] {
			t.Errorf("%s: %+v, want %+v", component, got[component], want[component])
		}
	}
}

// TestMonitorGuideRenders: the chart takes each file of values in the guide.
func TestMonitorGuideRenders(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/guides/monitor.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n# values.yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 2 {
		t.Fatalf("%d files of values in the guide", len(blocks))
	}
	for _, block := range blocks {
		if _, err := helm(t, "template", "godwit", chartDir, "--namespace=godwit", valuesFile(t, block[1])); err != nil {
			t.Errorf("%v for:\n%s", err, block[1])
		}
	}
}
