package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// alertFiles are the files of alerts in the chart, in the order of the page, with the heading of each.
var alertFiles = []struct{ file, heading string }{
	{"process", "Every feature"},
	{"storage-version-migrator", "Migrations of CRDs"},
	{"revision-upgrader", "Upgrades of revisions"},
	{"cluster-migration", "Moves of managed clusters"},
	{"hub-agent", "The agent of a hub"},
}

const alertFolder = "charts/godwit/files/alerts"

// alert is a rule of a file, as Prometheus reads it.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// alertPage has a section for each alert, which the annotation runbook_url of the alert names.
func alertPage() (string, error) {
	var page strings.Builder
	page.WriteString(generated + "# Alerts\n\n" +
		"The chart has them in a PrometheusRule, with `metrics.prometheusRule.enabled`, for the features that are on:\n" +
		"[Monitor Godwit](../guides/monitor.md). NAMESPACE, NAME, COMPONENT and LEASE are those of the Deployment of the feature.\n" +
		"The annotation `runbook_url` of an alert names its section here, or [what its reason means](events.md).\n")
	if found, err := filepath.Glob(filepath.Join(repository, alertFolder, "*.yaml")); err != nil || len(found) != len(alertFiles) {
		return "", fmt.Errorf("%s has %d files, want %d: %w", alertFolder, len(found), len(alertFiles), err)
	}
	for _, f := range alertFiles {
		text, err := os.ReadFile(filepath.Join(repository, alertFolder, f.file+".yaml"))
		if err != nil {
			return "", err
		}
		var rules struct {
			Rules []alert `json:"rules"`
		}
		if err := yaml.UnmarshalStrict(text, &rules); err != nil {
			return "", fmt.Errorf("%s: %w", f.file, err)
		}
		fmt.Fprintf(&page, "\n## %s\n", f.heading)
		for _, a := range rules.Rules {
			page.WriteString(a.section())
		}
	}
	return page.String(), nil
}

func (a alert) section() string {
	after := "at once"
	if a.For != "" {
		after = "after " + a.For
	}
	more := ""
	if link := a.Annotations["runbook_url"]; link != "" {
		page, anchor, _ := strings.Cut(strings.TrimPrefix(link, "RUNBOOKS/"), "#")
		if prefix, varies := strings.CutSuffix(anchor, "-{{ $labels.reason | toLower }}"); varies {
			more = fmt.Sprintf("Each reason is explained among [events, conditions and reasons](%s); its anchor begins with `%s-`.\n\n", page, prefix)
		} else {
			more = fmt.Sprintf("[What it means](%s#%s).\n\n", page, anchor)
		}
	}
	return fmt.Sprintf("\n### %s\n\n%s Severity %s, %s.\n\n> %s\n\n%s```promql\n%s\n```\n", a.Alert, a.Annotations["summary"], a.Labels["severity"], after,
		strings.TrimSpace(a.Annotations["description"]), more, strings.TrimSpace(a.Expr))
}
