package reason

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// repository is the root, from here.
const repository = "../../.."

// TestEveryReasonIsDocumented reads the constants of all packages: each is documented in a
// group of its package, and each document is of a constant.
func TestEveryReasonIsDocumented(t *testing.T) {
	declared := declaredReasons(t)
	documented := map[string][]string{}
	for _, g := range Groups() {
		for _, d := range g.Docs {
			if !slices.ContainsFunc(g.packages, func(p string) bool { return slices.Contains(declared[p], d.Reason) }) {
				t.Errorf("%s of subject %s is documented, and no constant of %v is this reason", d.Reason, g.Subject, g.packages)
			}
			if d.Meaning == "" || d.Remedy == "" {
				t.Errorf("%s of subject %s has no meaning or no remedy", d.Reason, g.Subject)
			}
		}
		for _, p := range g.packages {
			for _, d := range g.Docs {
				documented[p] = append(documented[p], d.Reason)
			}
		}
	}
	for p, reasons := range declared {
		for _, r := range reasons {
			if !slices.Contains(documented[p], r) {
				t.Errorf("package %s declares reason %s, and no table that package reason collects documents it", p, r)
			}
		}
	}
}

// declaredReasons are the values of the constants that are reasons, by package.
func declaredReasons(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	walk := func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "bin" || strings.HasPrefix(entry.Name(), ".") && path != repository):
			return filepath.SkipDir
		case entry.IsDir() && filepath.Dir(path) == repository && slices.Contains([]string{"bench", "examples", "test", "tools"}, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(repository, filepath.Dir(path))
		all[folder] = append(all[folder], reasonsOf(file)...)
		return err
	}
	if err := filepath.WalkDir(repository, walk); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"internal/storageversion", "revision", "api/v1alpha1"} {
		if len(all[p]) == 0 {
			t.Fatalf("found no reason in package %s", p)
		}
	}
	return all
}

// reasonsOf are the values of the constants that are named Reason…, or are of a type Reason.
func reasonsOf(file *ast.File) []string {
	var all []string
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, s := range group.Specs {
			value, ok := s.(*ast.ValueSpec)
			if !ok {
				continue
			}
			kind, _ := value.Type.(*ast.Ident)
			for i, name := range value.Names {
				if !strings.HasPrefix(name.Name, "Reason") && (kind == nil || kind.Name != "Reason") || i >= len(value.Values) {
					continue
				}
				if literal, ok := value.Values[i].(*ast.BasicLit); ok { // else it has the name of another constant
					if text, err := strconv.Unquote(literal.Value); err == nil {
						all = append(all, text)
					}
				}
			}
		}
	}
	return all
}

func TestFind(t *testing.T) {
	for name, want := range map[string][]string{
		"Lossy":     {"ControllerRevision"},
		"lossy":     {"ControllerRevision"},
		"Forbidden": {"CRD", "ControllerRevision", "Command"},
		"Losy":      nil,
	} {
		var got []string
		for _, r := range Find(name) {
			got = append(got, r.Subject)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is a reason of %v, want %v", name, got, want)
		}
	}
}

// TestEachReasonIsOnceInATable: two rows of one subject would contradict each other one day.
func TestEachReasonIsOnceInATable(t *testing.T) {
	for _, g := range Groups() {
		seen := map[string]bool{}
		for _, d := range g.Docs {
			if seen[d.Reason] {
				t.Errorf("%s is documented twice for subject %s", d.Reason, g.Subject)
			}
			seen[d.Reason] = true
		}
	}
}

// TestOccurrencesOfConditions: a reason of the conditions without an occurrence would be shown as one
// that never appears.
func TestOccurrencesOfConditions(t *testing.T) {
	for _, g := range Groups() {
		if g.Subject != Migration && g.Subject != Revision {
			continue
		}
		for _, d := range g.Docs {
			if len(d.Occurrences) == 0 && d.Reason != "NotBlocked" && d.Reason != "RollbackPending" {
				t.Errorf("%s occurs in no condition", d.Reason)
			}
		}
	}
}
