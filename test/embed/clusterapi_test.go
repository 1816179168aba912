package embed_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/godwit-dev/godwit/crdmigrator"
)

const (
	theirs = "sigs.k8s.io/cluster-api/controllers/crdmigrator"
	ours   = godwit + "/crdmigrator"
)

// TestOneImportReplacesClusterAPIsMigrator changes the path of one import in an operator that embeds Cluster API's
// crdmigrator, on the libraries of a release of Cluster API. That raises the versions of its libraries at most to those
// of Godwit's floor.
func TestOneImportReplacesClusterAPIsMigrator(t *testing.T) {
	cases := map[string]struct {
		reason string
		raised map[string]string // of what the operator imports itself
	}{
		"v1.13.6": {
			reason: "it uses controller-runtime v0.23.3 and Kubernetes v0.35.4, one minor version below the floor",
			raised: map[string]string{
				"k8s.io/apiextensions-apiserver": "v0.36.3",
				"k8s.io/apimachinery":            "v0.36.3",
				"k8s.io/client-go":               "v0.36.3",
				"sigs.k8s.io/controller-runtime": "v0.24.1",
			},
		},
		"v1.14.0": {reason: "it uses the versions of the floor, or newer ones"},
	}
	floor := floorOfGodwit(t)
	for version, tc := range cases {
		t.Run(version, func(t *testing.T) {
			operator := module{t: t, dir: t.TempDir()}
			operator.copyFrom("testdata/clusterapi")
			operator.copyFrom("testdata/clusterapi-" + version)
			operator.run("go", "mod", "tidy", "-diff")
			before, requires, selectedBefore := operator.sources(), operator.required(), operator.selected()

			operator.rename(theirs, ours)
			operator.embedGodwit()

			if changed := changedLines(before, operator.sources()); len(changed) != 1 || changed[0] != "\t\""+ours+`"` {
				t.Errorf("lines changed in the sources: %q, want the one import", changed)
			}
			selectedAfter := operator.selected()
			if selectedAfter[godwit] == "" {
				t.Errorf("the operator does not require %s", godwit)
			}
			delete(selectedAfter, godwit)
			raised := newlySelected(selectedBefore, selectedAfter)
			for path, selected := range raised {
				if len(tc.raised) == 0 || selected != floor[path] {
					t.Errorf("%s: the change of the import brings %s %s, before it was %q, Godwit's floor is %q: %s",
						tc.reason, path, selected, selectedBefore[path], floor[path], remedy)
				}
				if line := requires[path]; line == "" || strings.HasSuffix(line, "// indirect") {
					delete(raised, path)
				}
			}
			if diff := cmp.Diff(tc.raised, raised, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: what is raised of the operator's own requirements (-want +got):\n%s%s", tc.reason, diff, remedy)
			}
			if t.Failed() {
				return // a build of other versions takes minutes and proves nothing
			}
			// Vet would compile nothing more, and analyze each library.
			operator.run("go", "build", "-o", filepath.Join(t.TempDir(), "operator"), ".")
		})
	}
}

// TestAnnotationIsClusterAPIs compares the annotation that Cluster API's migrator writes, in each of the releases, with the
// one that Godwit reads and writes: with another name, each migrator would repeat the work of the other.
func TestAnnotationIsClusterAPIs(t *testing.T) {
	const name = "CRDMigrationObservedGenerationAnnotation"
	for _, version := range []string{"v1.13.6", "v1.14.0"} {
		t.Run(version, func(t *testing.T) {
			operator := module{t: t, dir: t.TempDir()}
			operator.copyFrom("testdata/clusterapi")
			operator.copyFrom("testdata/clusterapi-" + version)
			if got := operator.constant("sigs.k8s.io/cluster-api/api/core/v1beta2", name); got != crdmigrator.ClusterAPIObservedGenerationAnnotation {
				t.Errorf("the annotation is %q, Godwit's is %q", got, crdmigrator.ClusterAPIObservedGenerationAnnotation)
			}
			if !slices.ContainsFunc(operator.files(theirs), func(file string) bool {
				text, err := os.ReadFile(file)
				return err == nil && strings.Contains(string(text), "clusterv1."+name)
			}) {
				t.Errorf("%s does not use %s", theirs, name)
			}
		})
	}
}

// constant is the value of a constant of a package that the operator may import.
func (m module) constant(pkg, name string) string {
	m.t.Helper()
	for _, file := range m.files(pkg) {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			m.t.Fatal(err)
		}
		var found string
		ast.Inspect(syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Names[0].Name != name || len(spec.Values) != 1 {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				found, err = strconv.Unquote(literal.Value)
			}
			return false
		})
		if err != nil {
			m.t.Fatal(err)
		}
		if found != "" {
			return found
		}
	}
	m.t.Fatalf("%s has no constant %s", pkg, name)
	return ""
}

// files are the Go files of a package that the operator may import.
func (m module) files(pkg string) []string {
	m.t.Helper()
	listed := m.run("go", "list", "-f", `{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`, pkg)
	return strings.Fields(string(listed))
}

// floorOfGodwit maps the modules of Godwit's own build list to their versions.
func floorOfGodwit(t *testing.T) map[string]string {
	t.Helper()
	root := module{t: t, dir: t.TempDir()}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root.dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root.selected()
}

// newlySelected returns the modules of after that are new or have another version. Modules that only Cluster API's migrator
// required may be missing.
func newlySelected(before, after map[string]string) map[string]string {
	changed := maps.Clone(after)
	maps.DeleteFunc(changed, func(path, version string) bool { return before[path] == version })
	return changed
}

// sources maps the module's Go files to their lines.
func (m module) sources() map[string][]string {
	m.t.Helper()
	names, err := filepath.Glob(filepath.Join(m.dir, "*.go"))
	if err != nil || len(names) == 0 {
		m.t.Fatalf("%d Go files in %s: %v", len(names), m.dir, err)
	}
	sources := map[string][]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			m.t.Fatal(err)
		}
		sources[filepath.Base(name)] = strings.Split(string(text), "\n")
	}
	return sources
}

// rename replaces the path of an import.
func (m module) rename(from, to string) {
	m.t.Helper()
	for name, lines := range m.sources() {
		text := strings.ReplaceAll(strings.Join(lines, "\n"), `"`+from+`"`, `"`+to+`"`)
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
}

// changedLines returns the lines of after that are not in before.
func changedLines(before, after map[string][]string) []string {
	var changed []string
	for name, lines := range after {
		for i, line := range lines {
			if i >= len(before[name]) || before[name][i] != line {
				changed = append(changed, line)
			}
		}
	}
	return changed
}
