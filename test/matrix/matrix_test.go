package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// go test runs nothing for a name that is of no test, and does not fail.
func TestColumnsNameTests(t *testing.T) {
	attributes := map[string]string{}
	for _, c := range columns {
		source := sourceOf(t, c.folder)
		for _, test := range c.tests {
			name, script, isScript := strings.Cut(test, "/")
			if !regexp.MustCompile(`(?m)^func ` + name + `\(t \*testing\.T\)`).MatchString(source) {
				t.Errorf("column %q has %s, which is no test of %s", c.title, test, c.folder)
			}
			if isScript {
				if _, err := os.Stat(filepath.Join(root, c.folder, "testdata", "script", script+".txtar")); err != nil {
					t.Errorf("column %q: %v", c.title, err)
				}
			}
		}
		if c.attribute != "" {
			if !strings.Contains(source, `t.Attr("`+c.attribute+`"`) {
				t.Errorf("column %q: no test of %s reports %s", c.title, c.folder, c.attribute)
			}
			attributes[c.attribute] = c.title
		}
	}
	for _, m := range regexp.MustCompile(`t\.Attr\("([^"]+)"`).FindAllStringSubmatch(sourceOf(t, crds), -1) {
		if attributes[m[1]] == "" {
			t.Errorf("a test of %s reports %s, which has no column", crds, m[1])
		}
	}
}

func sourceOf(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no tests: %v", folder, err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

func TestCell(t *testing.T) {
	plain := column{folder: "test/x", tests: []string{"TestA", "TestB"}}
	tells := column{folder: "test/x", tests: []string{"TestA"}, attribute: "a"}
	cases := map[string]struct {
		reason string
		column column
		output string
		want   string
	}{
		"passes":       {"all", plain, `{"Action":"pass","Test":"TestA"}{"Action":"pass","Test":"TestB"}{"Action":"pass"}`, "passes, 2 of 2"},
		"fails":        {"by name", plain, `{"Action":"pass","Test":"TestA"}{"Action":"fail","Test":"TestB"}{"Action":"fail"}`, "**fails**: TestB"},
		"missing":      {"a test that was renamed", plain, `{"Action":"pass","Test":"TestA"}{"Action":"pass"}`, "**fails**: TestB (did not run)"},
		"skipped":      {"nothing was shown", plain, `{"Action":"pass","Test":"TestA"}{"Action":"skip","Test":"TestB"}{"Action":"pass"}`, "**fails**: TestB (skip)"},
		"not compiled": {"no test ran", plain, `{"Action":"fail"}`, "**fails**: TestA (did not run), TestB (did not run)"},
		"teardown":     {"the control plane did not stop", plain, `{"Action":"pass","Test":"TestA"}{"Action":"pass","Test":"TestB"}{"Action":"fail"}`, "**fails**: test/x, outside of its tests"},
		"crashed":      {"go test ended without a word", plain, `{"Action":"pass","Test":"TestA"}{"Action":"pass","Test":"TestB"}`, "**fails**: test/x, outside of its tests"},
		"other test":   {"another column's failure is not this one's", plain, `{"Action":"pass","Test":"TestA"}{"Action":"pass","Test":"TestB"}{"Action":"fail","Test":"TestC"}{"Action":"fail"}`, "passes, 2 of 2"},
		"attribute":    {"what the test reports", tells, `{"Action":"attr","Test":"TestA","Key":"a","Value":"on"}{"Action":"pass","Test":"TestA"}{"Action":"pass"}`, "on"},
		"no attribute": {"a test that reports nothing shows nothing", tells, `{"Action":"pass","Test":"TestA"}{"Action":"pass"}`, "**fails**: TestA reports no a"},
		"attribute of a test that fails": {"what it reports is not proven", tells,
			`{"Action":"attr","Test":"TestA","Key":"a","Value":"on"}{"Action":"fail","Test":"TestA"}{"Action":"fail"}`, "**fails**: TestA"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := readResults(strings.NewReader(strings.ReplaceAll(tc.output, "}{", "}\n{")))
			if err != nil {
				t.Fatal(err)
			}
			if got := tc.column.cell(r); got != tc.want {
				t.Errorf("cell %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// The table keeps the rows of versions that were not run, and only while they are of the same release and columns.
func TestTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "versions.md")
	versions := []version{{exact: "1.31.0"}, {exact: "1.32.0"}}
	write := func(text string) *page {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := readPage(path)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := write("# Versions\n\n" + begin + end + "\n\nAfter.\n")
	good := emptyRow("1.31.0")
	good.builds, good.cells[0] = "yes", "passes, 1 of 1\n| and more"
	p.rows["1.31.0"] = good
	if err := p.write(versions); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Versions\n\n" + begin, end + "\n\nAfter.\n", "| 1.31.0 | yes | passes, 1 of 1 / and more | not run |", "| 1.32.0 | not run | not run |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("page\n%s\nlacks %q", text, want)
		}
	}

	p = write(string(text))
	if err := p.write([]version{{exact: "1.31.0"}, {exact: "1.32.5"}}); err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(text), "1.32.0", "1.32.5"), string(again)); diff != "" {
		t.Errorf("written again (-want +got):\n%s", diff)
	}
	if p := write(strings.Replace(string(text), "| builds |", "| compiles |", 1)); len(p.rows) != 0 {
		t.Errorf("rows %v of a table with other columns, want none", p.rows)
	}
	if err := os.WriteFile(path, []byte("# Versions\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readPage(path); err == nil {
		t.Error("a page without a table was read")
	}
}

// A version whose server does not build has one line for the cause, the next one goes on, and the end is an error.
func TestVersionThatDoesNotBuild(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put("tools/matrix/build.sh", "#!/bin/sh\necho \"# k8s.io/x\" >&2\necho \"x/a.go:7:2: undefined: $1 | y\" >&2\necho too many errors >&2\nexit 1\n")
	put("tools/matrix/1.31/go.mod", "module m\n\nrequire k8s.io/kubernetes v1.31.7\n")
	put("tools/matrix/1.32/go.mod", "module m\n\nrequire (\n\tk8s.io/kubernetes v1.32.1\n)\n")
	put("tools/controlplane/go.mod", "module m\n\nrequire k8s.io/kubernetes v1.37.1 // indirect\n")
	put(pagePath, begin+end+"\n")
	var out bytes.Buffer
	if err := run(t.Context(), dir, []string{"1.31", "1.32"}, &out); !errors.Is(err, errBad) || !strings.Contains(err.Error(), "1.31.7, 1.32.1") {
		t.Errorf("run: %v, want an error that names both", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, pagePath))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 1.31.7 | **does not build**: x/a.go:7:2: undefined: 1.31 / y | not run |", "| 1.32.1 | **does not build**", "| 1.37.1 | not run |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("page\n%s\nlacks %q", text, want)
		}
	}
	if err := run(t.Context(), dir, []string{"1.29"}, &out); err == nil || !strings.Contains(err.Error(), "1.31, 1.32, 1.37") {
		t.Errorf("an unknown version: %v, want an error with the known ones", err)
	}
}

// The page of this repository has a row for each version that can be built, and the columns of today.
func TestPageOfThisRepository(t *testing.T) {
	versions, err := findVersions(root)
	if err != nil {
		t.Fatal(err)
	}
	p, err := readPage(filepath.Join(root, pagePath))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		if _, ok := p.rows[v.exact]; !ok {
			t.Errorf("%s has no row of Kubernetes %s with the columns of today: run make matrix", pagePath, v.exact)
		}
	}
	if minors := slices.IsSortedFunc(versions, func(a, b version) int { return strings.Compare(a.minor, b.minor) }); !minors || len(versions) < 7 {
		t.Errorf("versions %v, want seven in order", versions)
	}
}
