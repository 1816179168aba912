package embed_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	theirs = "sigs.k8s.io/cluster-api/controllers/crdmigrator"
	ours   = godwit + "/crdmigrator"
)

// TestClusterAPIsMigratorIsReplacedByOneImport takes an operator that embeds Cluster API's crdmigrator, on the libraries
// of that release, and changes the path of one import.
func TestClusterAPIsMigratorIsReplacedByOneImport(t *testing.T) {
	operator := module{t: t, dir: t.TempDir()}
	operator.copyFrom("testdata/clusterapi")
	operator.run("go", "mod", "tidy", "-diff")
	operator.run("go", "vet", ".") // or a mistake in the operator would be taken for one of ours
	before, selectedBefore := operator.sources(), operator.selected()

	operator.rename(theirs, ours)
	operator.embedGodwit()
	after, selectedAfter := operator.sources(), operator.selected()

	if changed := changedLines(before, after); len(changed) != 1 || changed[0] != "\t\""+ours+`"` {
		t.Errorf("lines changed in the sources: %q, want the one import", changed)
	}
	if selectedAfter[godwit] == "" {
		t.Errorf("the operator does not require %s", godwit)
	}
	delete(selectedAfter, godwit)
	for path := range selectedBefore {
		if _, stays := selectedAfter[path]; !stays {
			delete(selectedBefore, path) // what only Cluster API's migrator asked for may fall away
		}
	}
	if diff := cmp.Diff(selectedBefore, selectedAfter); diff != "" {
		t.Errorf("the change of the import raises or adds a module (-before +after):\n%s%s", diff, remedy)
	}
	if t.Failed() {
		return
	}
	operator.run("go", "build", "-o", filepath.Join(t.TempDir(), "operator"), ".")
	operator.run("go", "vet", ".")
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

// changedLines returns the lines of after that are not what they were before.
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
