package crdmigrator_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/godwit-dev/godwit/crdmigrator"
)

// ToolHive's group and label, by which its operator chooses what to migrate.
const (
	toolHiveGroup = "toolhive.stacklok.dev"
	toolHiveLabel = "toolhive.stacklok.dev/auto-migrate-storage-version"
)

var toolHiveSelector = crdmigrator.Selector{
	Group: toolHiveGroup, LabelSelector: labels.SelectorFromSet(labels.Set{toolHiveLabel: "true"}),
}

// newToolHive installs a definition in ToolHive's group, under a plural of its
// own: the control plane is shared.
func newToolHive(t *testing.T) *widgets {
	t.Helper()
	n := groups.Add(1)
	w := &widgets{t: t, plane: shared, group: toolHiveGroup, plural: fmt.Sprintf("mcpwidgets%d", n), kind: fmt.Sprintf("MCPWidget%d", n)}
	w.install()
	return w
}
