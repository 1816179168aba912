package source

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/command"
)

const (
	first = "module github.com/godwit-dev/godwit\n\ngo 1.26.0\n"
	tests = `module github.com/godwit-dev/godwit/test

go 1.26.0

require github.com/godwit-dev/godwit v0.0.0

replace github.com/godwit-dev/godwit => ../
`
	cmd = `module github.com/godwit-dev/godwit/cmd

go 1.26.0

require (
	github.com/godwit-dev/godwit v0.0.0
	github.com/godwit-dev/godwit/test v0.0.0
	github.com/spf13/cobra v1.10.2
)

replace (
	github.com/godwit-dev/godwit => ../
	github.com/godwit-dev/godwit/test => ../test
)
`
	adapter = "module github.com/godwit-dev/godwit/externalname/crossplane\n\ngo 1.26.0\n"
	bench   = "module github.com/godwit-dev/godwit/bench\n\ngo 1.26.0\n"
)

// goMods are the go.mod files of a workspace like ours, by folder.
func goMods() map[string][]byte {
	return map[string][]byte{
		".": []byte(first), "test": []byte(tests), "cmd": []byte(cmd), "externalname/crossplane": []byte(adapter), "bench": []byte(bench),
	}
}

// TestPublished: a module is after those that it requires, because its go.sum has their checksums. Modules that only tests
// import are not published.
func TestPublished(t *testing.T) {
	w, err := newWorkspace(goMods())
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, m := range w.published {
		tags = append(tags, m.Tag("v0.1.0"))
	}
	if diff := cmp.Diff([]string{"v0.1.0", "cmd/v0.1.0", "externalname/crossplane/v0.1.0"}, tags); diff != "" {
		t.Error(diff)
	}
	without := goMods()
	delete(without, "cmd")
	if _, err := newWorkspace(without); err == nil || !strings.Contains(err.Error(), "godwit/cmd") {
		t.Errorf("without a published module: %v", err)
	}
	circle := goMods()
	circle["."] = []byte(first + "require github.com/godwit-dev/godwit/cmd v0.0.0\n")
	if _, err := newWorkspace(circle); err == nil {
		t.Error("a circle has no order")
	}
}

// TestOnlyTestsImportUnpublishedModules: the modules of this repository compile without those that a release drops from their
// go.mod files.
func TestOnlyTestsImportUnpublishedModules(t *testing.T) {
	const root = "../../../.."
	for _, dir := range published {
		in := command.Command{Dir: filepath.Join(root, dir), Env: []string{"GOWORK=off", "GOFLAGS=-mod=readonly"}}
		list, err := in.Run(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./...")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Compact(slices.Sorted(strings.SplitSeq(list, "\n"))) {
			if folder, ours := strings.CutPrefix(name+"/", artifact.Module+"/"); ours && !slices.Contains(published, path.Clean(folder)) {
				t.Errorf("module %s imports module %s, which is not published: only tests may", path.Join(artifact.Module, dir), name)
			}
		}
	}
}

func TestReleased(t *testing.T) {
	w, err := newWorkspace(goMods())
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.released("cmd/go.mod", []byte(cmd), "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	want := `module github.com/godwit-dev/godwit/cmd

go 1.26.0

require (
	github.com/godwit-dev/godwit v0.1.0
	github.com/spf13/cobra v1.10.2
)
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	again, err := w.released("cmd/go.mod", got, "v0.1.0")
	if err != nil || string(again) != want {
		t.Errorf("a release of the tag itself changes go.mod: %v\n%s", err, cmp.Diff(want, string(again)))
	}
	foreign := cmd + "\nreplace github.com/spf13/cobra => ../cobra\n"
	if _, err := w.released("cmd/go.mod", []byte(foreign), "v0.1.0"); err == nil || !strings.Contains(err.Error(), "cobra") {
		t.Errorf("a replace line of another module would be lost for users: %v", err)
	}
}

func TestSummed(t *testing.T) {
	file, err := modfile.Parse("go.mod", []byte(cmd), nil)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{
		"github.com/godwit-dev/godwit":                         "github.com/godwit-dev/godwit v0.1.0 h1:A\ngithub.com/godwit-dev/godwit v0.1.0/go.mod h1:B\n",
		"github.com/godwit-dev/godwit/externalname/crossplane": "github.com/godwit-dev/godwit/externalname/crossplane v0.1.0 h1:C\n",
	}
	got := summed([]byte("github.com/a/b v1.9.0 h1:X\ngithub.com/a/b v1.9.0/go.mod h1:X\ngithub.com/a/b v1.10.0/go.mod h1:X\ngithub.com/godwit-dev/godwit v0.0.9 h1:old\ngithub.com/spf13/cobra v1.10.2 h1:Y\n"), file, sums)
	want := "github.com/a/b v1.9.0 h1:X\ngithub.com/a/b v1.9.0/go.mod h1:X\ngithub.com/a/b v1.10.0/go.mod h1:X\ngithub.com/godwit-dev/godwit v0.1.0 h1:A\ngithub.com/godwit-dev/godwit v0.1.0/go.mod h1:B\ngithub.com/spf13/cobra v1.10.2 h1:Y\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestChart(t *testing.T) {
	const image = "      image: ghcr.io/godwit-dev/godwit:"
	got, err := stampedChart([]byte("apiVersion: v2\nversion: 0.0.9\nappVersion: 0.0.9\nkubeVersion: \">=1.31\"\n"+image+"v0.0.9\n"), "v0.1.0")
	if want := "apiVersion: v2\nversion: 0.1.0\nappVersion: 0.1.0\nkubeVersion: \">=1.31\"\n" + image + "v0.1.0\n"; err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, cmp.Diff(want, string(got)))
	}
	if _, err := stampedChart([]byte("version: 1\n"), "v0.1.0"); err == nil {
		t.Error("a chart without an appVersion is not stamped")
	}
	values, err := WithDigest([]byte("image:\n  tag: \"\"\n  digest: \"\"\n"), "sha256:1")
	if want := "image:\n  tag: \"\"\n  digest: sha256:1\n"; err != nil || string(values) != want {
		t.Errorf("%v\n%s", err, cmp.Diff(want, string(values)))
	}
	if _, err := WithDigest(values, "sha256:2"); err == nil {
		t.Error("values with a digest are not those of the tree")
	}
}
