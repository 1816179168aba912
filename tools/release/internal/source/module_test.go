package source

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
)

const (
	first = "module github.com/godwit-dev/godwit\n\ngo 1.26.0\n"
	hub   = "module github.com/godwit-dev/godwit/cmd/hub\n\ngo 1.26.0\n"
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

func workspace() map[string][]byte {
	return map[string][]byte{
		".": []byte(first), "hub": []byte(hub), "test": []byte(tests), "cmd": []byte(cmd), "externalname/crossplane": []byte(adapter), "bench": []byte(bench),
	}
}

// TestPublished: a module is after those that it requires, because its go.sum has their checksums. What no root requires
// is not published.
func TestPublished(t *testing.T) {
	modules, err := published(workspace())
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, m := range modules {
		tags = append(tags, m.Tag("v0.1.0"))
	}
	if diff := cmp.Diff([]string{"v0.1.0", "test/v0.1.0", "cmd/v0.1.0", "externalname/crossplane/v0.1.0", "hub/v0.1.0"}, tags); diff != "" {
		t.Error(diff)
	}
	without := workspace()
	delete(without, "hub")
	if _, err := published(without); err == nil || !strings.Contains(err.Error(), "godwit/hub") {
		t.Errorf("without a root: %v", err)
	}
	circle := workspace()
	circle["."] = []byte(first + "require github.com/godwit-dev/godwit/test v0.0.0\n")
	if _, err := published(circle); err == nil {
		t.Error("a circle has no order")
	}
}

func TestReleased(t *testing.T) {
	modules, err := published(workspace())
	if err != nil {
		t.Fatal(err)
	}
	got, err := released("cmd/go.mod", []byte(cmd), modules, "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	want := `module github.com/godwit-dev/godwit/cmd

go 1.26.0

require (
	github.com/godwit-dev/godwit v0.1.0
	github.com/godwit-dev/godwit/test v0.1.0
	github.com/spf13/cobra v1.10.2
)
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	again, err := released("cmd/go.mod", got, modules, "v0.1.0")
	if err != nil || string(again) != want {
		t.Errorf("a release of the tag itself changes go.mod: %v\n%s", err, cmp.Diff(want, string(again)))
	}
	foreign := cmd + "\nreplace github.com/spf13/cobra => ../cobra\n"
	if _, err := released("cmd/go.mod", []byte(foreign), modules, "v0.1.0"); err == nil || !strings.Contains(err.Error(), "cobra") {
		t.Errorf("a replace line of another module would be lost for users: %v", err)
	}
}

func TestSummed(t *testing.T) {
	file, err := modfile.Parse("go.mod", []byte(cmd), nil)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{
		"github.com/godwit-dev/godwit":     "github.com/godwit-dev/godwit v0.1.0 h1:A\ngithub.com/godwit-dev/godwit v0.1.0/go.mod h1:B\n",
		"github.com/godwit-dev/godwit/cmd/hub": "github.com/godwit-dev/godwit/cmd/hub v0.1.0 h1:C\n",
	}
	got := summed([]byte("github.com/a/b v1.9.0 h1:X\ngithub.com/a/b v1.9.0/go.mod h1:X\ngithub.com/a/b v1.10.0/go.mod h1:X\ngithub.com/godwit-dev/godwit v0.0.9 h1:old\ngithub.com/spf13/cobra v1.10.2 h1:Y\n"), file, sums)
	want := "github.com/a/b v1.9.0 h1:X\ngithub.com/a/b v1.9.0/go.mod h1:X\ngithub.com/a/b v1.10.0/go.mod h1:X\ngithub.com/godwit-dev/godwit v0.1.0 h1:A\ngithub.com/godwit-dev/godwit v0.1.0/go.mod h1:B\ngithub.com/spf13/cobra v1.10.2 h1:Y\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestChart(t *testing.T) {
	got, err := stampedChart([]byte("apiVersion: v2\nversion: 0.0.9\nappVersion: 0.0.9\nkubeVersion: \">=1.31\"\n"), "v0.1.0")
	if want := "apiVersion: v2\nversion: 0.1.0\nappVersion: 0.1.0\nkubeVersion: \">=1.31\"\n"; err != nil || string(got) != want {
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
