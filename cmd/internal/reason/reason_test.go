package reason

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	// repository is the root, from here.
	repository = "../../.."
	module     = "github.com/godwit-dev/godwit/"
)

// TestEveryCatalogIsInAGroup finds the catalogs of all packages, and those that Groups names.
func TestEveryCatalogIsInAGroup(t *testing.T) {
	declared, grouped := []string{}, []string{}
	eachFile(t, func(folder string, file *ast.File) {
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, s := range group.Specs {
				if value, ok := s.(*ast.ValueSpec); ok && isSelector(value.Type, "godwit", "Catalog") {
					declared = append(declared, folder+"."+value.Names[0].Name)
				}
			}
		}
		if folder == "cmd/internal/reason" {
			grouped = append(grouped, groupedCatalogs(file)...)
		}
	})
	slices.Sort(declared)
	slices.Sort(grouped)
	if !slices.Equal(declared, grouped) {
		t.Errorf("packages declare the catalogs\n%v\nand Groups has\n%v", declared, grouped)
	}
	if len(declared) < 20 {
		t.Errorf("found %d catalogs, want more: they are declared in another way now", len(declared))
	}
}

// groupedCatalogs are the catalogs whose address a file takes.
func groupedCatalogs(file *ast.File) []string {
	packages := map[string]string{}
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		packages[name] = strings.TrimPrefix(path, module)
	}
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		if address, ok := n.(*ast.UnaryExpr); ok && address.Op == token.AND {
			if s, ok := address.X.(*ast.SelectorExpr); ok {
				if name, ok := s.X.(*ast.Ident); ok {
					all = append(all, packages[name.Name]+"."+s.Sel.Name)
				}
			}
		}
		return true
	})
	return all
}

// TestReasonsAreDeclaredByACatalog: a reason with a literal name that no catalog declares, or one that is a constant, would be
// in no reference.
func TestReasonsAreDeclaredByACatalog(t *testing.T) {
	eachFile(t, func(folder string, file *ast.File) {
		declared := map[ast.Node]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 {
				if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Declare" {
					declared[call.Args[0]] = true
				}
			}
			literal, ok := n.(*ast.CompositeLit)
			if ok && isSelector(literal.Type, "godwit", "Reason") && !declared[n] && hasLiteralName(literal) {
				t.Errorf("package %s has the reason %v, which no catalog declares", folder, literal.Elts[0])
			}
			if spec, ok := n.(*ast.ValueSpec); ok && spec.Type == nil && len(spec.Values) == 1 && strings.HasPrefix(spec.Names[0].Name, "Reason") {
				if _, ok := spec.Values[0].(*ast.BasicLit); ok {
					t.Errorf("package %s declares %s as a constant, want it declared by a catalog", folder, spec.Names[0].Name)
				}
			}
			return true
		})
	})
}

func hasLiteralName(reason *ast.CompositeLit) bool {
	return slices.ContainsFunc(reason.Elts, func(e ast.Expr) bool {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		name, _ := field.Key.(*ast.Ident)
		_, literal := field.Value.(*ast.BasicLit)
		return literal && name != nil && name.Name == "Name"
	})
}

func isSelector(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	of, ok := s.X.(*ast.Ident)
	return ok && of.Name == pkg
}

// eachFile calls visit for each Go file of the product, with its folder in the repository.
func eachFile(t *testing.T, visit func(folder string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "bin" || strings.HasPrefix(entry.Name(), ".") && path != repository):
			return filepath.SkipDir
		case entry.IsDir() && filepath.Dir(path) == repository && slices.Contains([]string{"bench", "dist", "examples", "test", "tools"}, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(repository, filepath.Dir(path))
		visit(filepath.ToSlash(folder), file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReasonsAreComplete: users read each field, and two reasons of one name in one group would contradict each other one day.
func TestReasonsAreComplete(t *testing.T) {
	camelCase := regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	for _, g := range Groups() {
		seen := map[string]bool{}
		for _, r := range g.Reasons() {
			if !camelCase.MatchString(r.Name) || !strings.HasSuffix(r.Meaning, ".") || len(r.Fix) == 0 {
				t.Errorf("%s: %q means %q, fix %q: want a CamelCase name, a sentence and a fix", g.Subject, r.Name, r.Meaning, r.Fix)
			}
			if seen[r.Name] {
				t.Errorf("%s: %s is declared twice", g.Subject, r.Name)
			}
			seen[r.Name] = true
		}
	}
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

// TestOccurrencesOfConditions: a reason of the conditions without an occurrence would be shown as one
// that never appears.
func TestOccurrencesOfConditions(t *testing.T) {
	for _, g := range Groups() {
		if g.Subject != Migration && g.Subject != Revision {
			continue
		}
		for _, r := range g.Reasons() {
			if len(g.Occurrences(r)) == 0 && !slices.Contains([]string{"NotBlocked", "RollbackPending", "Unreferenced", "Unreadable"}, r.Name) {
				t.Errorf("%s occurs in no condition", r.Name)
			}
		}
	}
}
