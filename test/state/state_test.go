package state

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const repository = "../.."

var (
	// stateName is what a user may find in a cluster, as a whole literal.
	stateName = regexp.MustCompile(`^([a-z-]+\.)?godwit\.dev/[a-z0-9-]*$|^godwit-[a-z-]+$`)
	// documented are the names on the page.
	documented = regexp.MustCompile("`((?:[a-z-]+\\.)?godwit\\.dev/[a-z0-9-]*|godwit-[a-z-]+)[^`]*`")
)

// sources are the folders whose code stores something. Others have names of commands, of test objects and of the demo.
var sources = []string{
	"api", "crdmigrator", "externalname", "cmd/hub", "internal", "revision", "cmd/internal/controller", "cmd/internal/operator", "cmd/internal/hubagent", "cmd/internal/render",
}

// unstored are literals that no cluster keeps.
var unstored = map[string]string{
	"godwit.dev/":          "prefix of the labels that do not move with a cluster",
	"godwit-export":        "field manager of dry runs",
	"godwit-manager":       "client ID in the log of brokers",
	"godwit-agent-":        "prefix of a client ID and of the groups",
	"godwit-manager-":      "prefix of a group",
	"godwit-hub-agent":     "name of a role, which the chart deletes",
	"godwit-chart-":        "temporary folder",
	"godwit-permissions-":  "object of a dry run",
	"godwit-provider-test": "temporary folder",
}

// names are the literals of the source that look like a name of state, with the file of each.
func names(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range sources {
		err := filepath.WalkDir(filepath.Join(repository, folder), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				literal, ok := n.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				if text, err := strconv.Unquote(literal.Value); err == nil && stateName.MatchString(text) {
					found[text] = path
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// TestPageHasWhatTheSourceStores: in both directions.
func TestPageHasWhatTheSourceStores(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs", "reference", "state.md"))
	if err != nil {
		t.Fatal(err)
	}
	var page []string
	for _, found := range documented.FindAllStringSubmatch(string(text), -1) {
		page = append(page, found[1])
	}
	stored := names(t)
	for name, file := range stored {
		if _, known := unstored[name]; !known && !slices.Contains(page, name) {
			t.Errorf("docs/reference/state.md does not have %s, which %s stores: say who writes it, its format, and how to remove it", name, file)
		}
	}
	for _, name := range page {
		_, is := stored[name]
		made := slices.ContainsFunc([]string{"godwit-storage-version-migrator", "godwit-revision-upgrader", "godwit-cluster-migration", "godwit-manager-", "godwit-agent-"}, func(n string) bool { return n == name })
		if !is && !made {
			t.Errorf("docs/reference/state.md has %s, which no source stores", name)
		}
	}
	if len(stored) < 30 {
		t.Errorf("%d names were found, want more: %v", len(stored), stored)
	}
}

// TestEachFileIsOnThePage: a frozen file that no row names is of no use to a reader.
func TestEachFileIsOnThePage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs", "reference", "state.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range []string{"v0.1.0", "newer"} {
		files, err := os.ReadDir(release)
		if err != nil || len(files) < 9 {
			t.Fatalf("%d files of %s: %v", len(files), release, err)
		}
		for _, f := range files {
			if !strings.Contains(string(text), "`"+f.Name()+"`") && !f.IsDir() {
				t.Errorf("docs/reference/state.md does not name %s/%s", release, f.Name())
			}
			if _, err := os.Stat(filepath.Join("newer", f.Name())); err != nil && !f.IsDir() {
				t.Errorf("no file says what happens to %s of a newer release: %v", f.Name(), err)
			}
		}
	}
}
