package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	_ "sigs.k8s.io/controller-runtime/pkg/controller" // registers the metrics of controllers
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/godwit-dev/godwit/cmd/hub/agent"
	hubmanager "github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/internal/controller/crdinventory"
	"github.com/godwit-dev/godwit/cmd/internal/controller/crdmigration"
	"github.com/godwit-dev/godwit/cmd/internal/controller/revisionupgrade"
	"github.com/godwit-dev/godwit/cmd/internal/controller/stalled"
	"github.com/godwit-dev/godwit/walk"
)

// theirs are the metrics of controller-runtime that show the health of the manager.
var theirs = []struct{ name, meaning string }{
	{"leader_election_master_status", "1 for the replica that works, 0 for those that stand by"},
	{"controller_runtime_reconcile_errors_total", "with `controller=\"crdmigration\"`, `\"crdscope\"`, `\"crdinventory\"`, `\"revisionupgrade\"`, `\"revisionupgradetrigger\"` or `\"clustermigration\"`: what could not be read or written, and is tried again"},
	{"controller_runtime_active_workers", "with `controller=\"crdmigration\"`: migrations that are processed at this moment, of at most 32; with `\"revisionupgrade\"`: namespaces, of at most 4"},
	{"workqueue_depth", "with `name=\"crdmigration\"`: migrations that wait for their turn"},
	{"rest_client_requests_total", "by `code`: 429 means that the API server throttles the manager"},
}

// metric is the description of a collector.
type metric struct{ name, kind, help, labels string }

// listing takes the place of a registry.
type listing struct {
	prometheus.Registerer
	metrics []metric
}

func (l *listing) Register(c prometheus.Collector) error {
	found, err := described(c)
	l.metrics = append(l.metrics, found...)
	return err
}

func metricPage() (string, error) {
	var ours listing
	err := errors.Join(stalled.NewMetrics("a kind of godwit.dev", nil).Register(&ours),
		crdmigration.NewStates(nil).Register(&ours), crdmigration.NewMetrics(walk.NewLimiter(walk.Limits{})).Register(&ours),
		crdinventory.NewMetrics(nil).Register(&ours), revisionupgrade.NewMetrics(nil).Register(&ours), hubmanager.NewMetrics(nil).Register(&ours))
	if err != nil {
		return "", err
	}
	registry, ok := metrics.Registry.(prometheus.Collector)
	if !ok {
		return "", errors.New("controller-runtime's registry no longer tells what is in it")
	}
	known, err := described(registry)
	if err != nil {
		return "", err
	}
	var page strings.Builder
	page.WriteString(generated + "# Metrics\n\n" +
		"The manager serves them on `--metrics-bind-address`, over HTTPS, to clients authorized for `get /metrics`:\n" +
		"[Monitor Godwit](../guides/monitor.md). [The alerts](alerts.md) of the chart read them. The series of a\n" +
		"CRD end with its CRDMigration, those of a trigger with the trigger. No series has the name of an object that is\n" +
		"migrated. `outcome` is one of the counts in [status.storage](crdmigration.md#status). The manager does not serve the\n" +
		"series of a feature that is not enabled.\n\n")
	table := newTable("metric", "type", "labels", "meaning")
	for _, m := range ours.metrics {
		table.row(code(m.name), m.kind, m.labels, m.help)
	}
	page.WriteString(table.String())
	var agents listing
	if err := agent.NewMetrics().Register(&agents); err != nil {
		return "", err
	}
	page.WriteString("\n## The agent of a hub\n\n`godwit agent` serves these in the same way. No series has the name of a migration or of a cluster.\n\n")
	table = newTable("metric", "type", "labels", "meaning")
	for _, m := range agents.metrics {
		table.row(code(m.name), m.kind, m.labels, m.help)
	}
	page.WriteString(table.String())
	page.WriteString("\n## From controller-runtime\n\nOf the many that it serves beside them, these tell how the manager is:\n\n")
	table = newTable("metric", "meaning")
	for _, m := range theirs {
		if !has(known, m.name) {
			return "", fmt.Errorf("controller-runtime has no metric %s", m.name)
		}
		table.row(code(m.name), sentence(m.meaning))
	}
	page.WriteString(table.String())
	return page.String(), nil
}

func has(all []metric, name string) bool {
	for _, m := range all {
		if m.name == name {
			return true
		}
	}
	return false
}

// description is how client_golang prints one; it has no other way to read it.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: ("(?:[^"\\]|\\.)*"),.* constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

func described(c prometheus.Collector) ([]metric, error) {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		c.Describe(descriptions)
	}()
	var all []metric
	var err error
	for d := range descriptions {
		found := description.FindStringSubmatch(d.String())
		if found == nil {
			err = fmt.Errorf("%s is of a form that is not known", d)
			continue
		}
		m := metric{name: found[1], kind: kindOf(c)}
		if m.help, err = strconv.Unquote(found[2]); err != nil {
			continue
		}
		if labels := append(names(found[3]), split(found[4])...); len(labels) > 0 {
			m.labels = "`" + strings.Join(labels, "`, `") + "`"
		}
		all = append(all, m)
	}
	return all, err
}

// names are the labels whose values do not vary in a collector.
func names(constant string) (all []string) {
	for _, pair := range split(constant) {
		name, _, _ := strings.Cut(pair, "=")
		all = append(all, name)
	}
	return all
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

func kindOf(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.GaugeVec, prometheus.Gauge: // before Counter, of which a Gauge has all methods
		return "gauge"
	case *prometheus.CounterVec, prometheus.Counter:
		return "counter"
	case prometheus.Histogram, *prometheus.HistogramVec:
		return "histogram"
	}
	return "gauge" // a function; the one type that has no method of its own
}
