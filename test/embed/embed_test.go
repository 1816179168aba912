package embed_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	// The import makes go test run this test again when Godwit's code changes.
	_ "github.com/godwit-dev/godwit/crdmigrator"
)

const godwit = "github.com/godwit-dev/godwit"

// TestEmbeddingAddsOneLineToGoMod runs go mod tidy for an operator before and after it embeds Godwit.
func TestEmbeddingAddsOneLineToGoMod(t *testing.T) {
	operator := module{t: t, dir: t.TempDir()}

	operator.copyFrom("testdata/operator")
	operator.run("go", "mod", "tidy", "-diff") // or the comparison would include changes that were due before
	requiredBefore, selectedBefore := operator.required(), operator.selected()

	operator.copyFrom("testdata/godwit")
	operator.embedGodwit()
	requiredAfter, selectedAfter := operator.required(), operator.selected()

	if requiredAfter[godwit] == "" {
		t.Fatalf("the operator's go.mod does not require %s: testdata/godwit is to import it", godwit)
	}
	delete(requiredAfter, godwit)
	if diff := cmp.Diff(requiredBefore, requiredAfter); diff != "" {
		t.Errorf("embedding Godwit changes more than one line of an operator's go.mod (-before +after):\n%s%s", diff, remedy)
	}
	delete(selectedAfter, godwit)
	if diff := cmp.Diff(selectedBefore, selectedAfter); diff != "" {
		t.Errorf("embedding Godwit changes the build list of an operator (-before +after):\n%s%s", diff, remedy)
	}

	if t.Failed() {
		return // a build of other versions takes minutes and proves nothing
	}
	operator.run("go", "build", "-o", filepath.Join(t.TempDir(), "operator"), ".")
}

const remedy = "Module 1 may require only what controller-runtime brings at Godwit's floor: " +
	"move what needs more into a module of its own, or lower the version in the go.mod of the repository's root."

// module is a copy of testdata that the go command may change.
type module struct {
	t   *testing.T
	dir string
}

func (m module) copyFrom(dir string) {
	m.t.Helper()
	if err := os.CopyFS(m.dir, os.DirFS(dir)); err != nil {
		m.t.Fatal(err)
	}
}

// embedGodwit adds the requirement that go mod tidy adds for the import, replaced by this tree.
func (m module) embedGodwit() {
	m.t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		m.t.Fatal(err)
	}
	m.run("go", "mod", "edit", "-replace="+godwit+"="+root)
	m.run("go", "mod", "tidy")
}

// run runs a command outside the workspace, as an operator's author would.
func (m module) run(name string, args ...string) []byte {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), name, args...)
	cmd.Dir = m.dir
	cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s%s", cmd, err, out, stderr.String())
	}
	return out
}

// required maps every module that go.mod names to the rest of its line.
func (m module) required() map[string]string {
	m.t.Helper()
	var file struct {
		Require []struct {
			Path, Version string
			Indirect      bool
		}
	}
	if err := json.Unmarshal(m.run("go", "mod", "edit", "-json"), &file); err != nil {
		m.t.Fatal(err)
	}
	lines := map[string]string{}
	for _, r := range file.Require {
		lines[r.Path] = r.Version
		if r.Indirect {
			lines[r.Path] += " // indirect"
		}
	}
	return lines
}

// selected maps every module of the build list to its version.
func (m module) selected() map[string]string {
	m.t.Helper()
	versions := map[string]string{}
	for line := range strings.Lines(string(m.run("go", "list", "-m", "-f", "{{.Path}} {{.Version}}", "all"))) {
		path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		versions[path] = version
	}
	if len(versions) < 2 {
		m.t.Fatalf("go list -m all names only %v", slices.Collect(maps.Keys(versions)))
	}
	return versions
}
