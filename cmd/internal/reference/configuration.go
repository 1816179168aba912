package main

import (
	"fmt"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/operator"
)

const (
	configuration  = "cmd/internal/operator/config.go"
	brokerSettings = "cmd/internal/broker/settings.go"
)

func configurationPage() (string, error) {
	all, err := structs(configuration)
	if err != nil {
		return "", err
	}
	brokers, err := structs(brokerSettings)
	if err != nil {
		return "", err
	}
	all["broker.Settings"] = brokers["Settings"]
	var page strings.Builder
	fmt.Fprintf(&page, "%s# Configuration of the manager\n\n", generated)
	fmt.Fprintf(&page, "`godwit manager --config=FILE` reads a file that begins like this. Every other key is optional. A key that is not known,\n"+
		"or a value that can't be meant, fails the start with one line that names it.\n\n```yaml\napiVersion: %s\nkind: %s\n```\n\n",
		operator.ConfigurationVersion, operator.ConfigurationKind)
	keys := newTable("key", "type", "meaning")
	if err := addKeys(keys, all, "", "Configuration"); err != nil {
		return "", err
	}
	page.WriteString(keys.String())
	fmt.Fprintf(&page, "\n## Controllers\n\n")
	controllers := newTable("controller", "switched by", "meaning")
	controllers.row(code(operator.StorageVersionMigrator), code(operator.EnableVariable),
		"Migrates the CRDs in scope. It runs unless the variable is false. A value that is not a boolean fails the start. `--controllers` takes precedence.")
	controllers.row(code(operator.RevisionUpgrader), code(operator.EnableRevisionUpgrader),
		"Upgrades KubeVirt's ControllerRevisions as triggers ask for it. It runs if the variable is true; the rest is as above.")
	controllers.row(code(operator.ClusterMigration), code(operator.EnableClusterMigration),
		"Moves managed clusters between hubs, as ManagedClusterMigrations say. It runs if the variable is true, and needs brokers of Kafka; the rest is as above.")
	page.WriteString(controllers.String())
	return page.String(), nil
}

func addKeys(t *table, all map[string][]field, prefix, of string) error {
	for _, f := range all[of] {
		if f.doc == "" {
			return fmt.Errorf("%s: the key %s%s has no comment", configuration, prefix, f.name)
		}
		item := strings.TrimPrefix(f.kind, "[]")
		_, ours := all[item]
		t.row(code(prefix+f.name), yamlType(f.kind, ours), f.doc)
		if !ours {
			continue
		}
		deeper := prefix + f.name + "."
		if item != f.kind {
			deeper = prefix + f.name + "[]."
		}
		if err := addKeys(t, all, deeper, item); err != nil {
			return err
		}
	}
	return nil
}

// yamlType names a Go type as people who write YAML know it.
func yamlType(kind string, ours bool) string {
	switch kind {
	case "v1alpha1.CRDMigrationSpec":
		return "[spec of a CRDMigration](crdmigration.md#spec)"
	case "metav1.LabelSelector":
		return "label selector"
	case "resource.Quantity":
		return "quantity"
	case "float64":
		return "number"
	case "bool":
		return "boolean"
	case "int":
		return "integer"
	}
	switch {
	case strings.HasPrefix(kind, "[]"):
		return "list"
	case ours:
		return "object"
	}
	return kind
}
