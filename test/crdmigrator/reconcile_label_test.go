package crdmigrator_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// The group and label by which ToolHive's operator selects CRDs.
const (
	toolHiveGroup = "toolhive.stacklok.dev"
	toolHiveLabel = "toolhive.stacklok.dev/auto-migrate-storage-version"
)

var toolHiveSelector = crdmigrator.Selector{
	Group: toolHiveGroup, LabelSelector: labels.SelectorFromSet(labels.Set{toolHiveLabel: "true"}),
}

// newToolHive installs a CRD in ToolHive's group, with a plural of its own, because the
// control plane is shared.
func newToolHive(t *testing.T) *widgets {
	t.Helper()
	n := groups.Add(1)
	w := &widgets{t: t, plane: shared, group: toolHiveGroup, plural: fmt.Sprintf("mcpwidgets%d", n), kind: fmt.Sprintf("MCPWidget%d", n)}
	w.install()
	return w
}

// TestReconcileWorkedExample is the table of ToolHive's document, row by row.
func TestReconcileWorkedExample(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name           string
		versions       []string // served; the last one is the storage version
		storedVersions []string
		label          string
		ignored        bool
		updates        int
		want           string // storedVersions afterwards
	}{
		{"mcpservers", []string{"v1alpha1", "v1beta1"}, []string{"v1alpha1", "v1beta1"}, "true", false, 3, "v1beta1"},
		{"mcpgroups", []string{"v1alpha1", "v1beta1"}, []string{"v1beta1"}, "true", false, 0, "v1beta1"},
		{"newshinything", []string{"v1beta1", "v1beta2"}, []string{"v1beta1", "v1beta2"}, "true", false, 3, "v1beta2"},
		{"experimental", []string{"v1alpha1"}, []string{"v1alpha1"}, "", true, 0, "v1alpha1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newRow(t, test.name, test.versions)
			defer w.removeCRD() // its name is not of this test alone
			if got, want := w.storedVersions(), strings.Join(test.storedVersions, ","); got != want {
				w.setStoredVersions(test.storedVersions...)
			}
			w.label(toolHiveLabel, test.label)
			before := w.crd()
			o := w.selecting(func(o *operator) { o.migrator.Selector = toolHiveSelector })
			o.mustReconcile(test.name, reconcile.Result{})

			if n := o.updates(); n != test.updates {
				t.Errorf("%d updates, want %d", n, test.updates)
			}
			w.mustHaveStoredVersions(test.name, test.want)
			if test.updates > 0 {
				w.mustBeStored(test.name, map[string]int{test.want: test.updates})
				return
			}
			o.mustWriteNothing("there is nothing to do")
			about := o.requests.matching(func(r string) bool { return strings.Contains(r, test.name) })
			if ignored := len(about) == 1; ignored != test.ignored {
				t.Errorf("ignored: %v, want %v, by requests %q", ignored, test.ignored, about)
			}
			if diff := cmp.Diff(before, w.crd()); diff != "" {
				t.Errorf("the CRD changed (-before +after):\n%s", diff)
			}
		})
	}
}

// newRow installs a CRD of the worked example, which had each of the versions as its
// storage version in turn. Three objects are at the first version.
func newRow(t *testing.T, plural string, versions []string) *widgets {
	t.Helper()
	w := &widgets{t: t, plane: shared, config: shared.Config(), group: toolHiveGroup, plural: plural, kind: plural, name: plural + "." + toolHiveGroup}
	crd := w.newCRD()
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{version(versions[0], true, true)}
	if err := controlplane.InstallCRDs(t.Context(), w.config, crd); err != nil {
		t.Fatal(err)
	}
	w.fill(versions[0], 3)
	if len(versions) == 2 {
		w.setVersions(version(versions[0], true, false), version(versions[1], true, true))
		w.awaitStoringFrom(versions[0], versions[1])
	}
	return w
}

// TestReconcileSelectsByConfiguredLabel: with a configured label, the default label does
// not count, and without one only the default label counts.
func TestReconcileSelectsByConfiguredLabel(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		selector labels.Selector
		label    string
		migrates bool
	}{
		"the default label":                   {label: crdmigrator.AutoMigrateLabel, migrates: true},
		"the configured label":                {selector: toolHiveSelector.LabelSelector, label: toolHiveLabel, migrates: true},
		"the default one beside a configured": {selector: toolHiveSelector.LabelSelector, label: crdmigrator.AutoMigrateLabel},
		"another label than the default one":  {label: toolHiveLabel},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := newToolHive(t)
			w.fill("v1", 3)
			w.flip()
			w.label(test.label, crdmigrator.AutoMigrateValue)
			o := w.selecting(func(o *operator) { o.migrator.Selector.LabelSelector = test.selector })
			o.mustReconcile(reason, reconcile.Result{})
			want := "v1,v2"
			if test.migrates {
				want = "v2"
			} else {
				o.mustWriteNothing(reason)
			}
			w.mustHaveStoredVersions(reason, want)
		})
	}
}
