package order

import (
	"bytes"
	"cmp"
	"errors"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	module     = "github.com/godwit-dev/godwit"
	repository = "../.." // from here

	// A package with more files than manyFiles has a reading order in its doc.go.
	manyFiles = 5
	// A package has at most maxFiles files and maxLines lines: a larger one is two.
	maxFiles = 20
	maxLines = 2800
)

// ordered are the packages whose files use each other in their reading order, as folders of the repository.
var ordered = []string{
	"api/v1alpha1",
	"bench/hub", "bench/internal/frame", "bench/manager", "bench/peers", "bench/revision",
	"cmd/internal/cluster", "cmd/internal/crd", "cmd/internal/crd/check", "cmd/internal/crd/crdreport", "cmd/internal/evidence/evidencereport", "cmd/internal/externalname", "cmd/internal/frame",
	"cmd/internal/plan", "cmd/internal/plan/planreport", "cmd/internal/resource", "cmd/internal/revision",
	"cmd/internal/root", "cmd/internal/controller/crdmigration", "cmd/internal/controller/revisionupgrade",
	"cmd/internal/permission", "cmd/internal/reference", "cmd/internal/render",
	"crdmigrator", "crdmigrator/doctor", "crdmigrator/markers", "crdmigrator/releasecheck", "crdmigrator/rescue",
	"examples/provider-ldap/provider",
	"externalname", "externalname/crossplane", "externalname/crossplane/conformance", "externalname/crossplane/export",
	"externalname/fieldmigration", "externalname/fleet", "externalname/handover",
	"cmd/hub", "cmd/hub/agent", "cmd/hub/cluster", "cmd/hub/manager", "cmd/hub/message", "cmd/hub/direct", "cmd/hub/preflight", "cmd/hub/rejoin", "cmd/hub/source", "cmd/hub/target",
	"internal/kube",
	"internal/storageversion", "internal/storageversion/decision", "internal/storageversion/values", "internal/storageversion/ownerreference", "internal/storageversion/preflight", "internal/storageversion/resource",
	"revision", "revision/decision", "revision/kubevirt",
	"test/controlplane", "test/docs/recording",
	"test/hub/ocm", "test/machine",
	"walk",
}

// TestPackagesAreSmall finds a package that is too large, and one with many files whose order no test checks.
func TestPackagesAreSmall(t *testing.T) {
	for folder, p := range packages(t) {
		if p.files > maxFiles || p.lines > maxLines {
			t.Errorf("%s has %d files with %d lines, want at most %d and %d: make two packages of it", folder, p.files, p.lines, maxFiles, maxLines)
		}
		if p.files > manyFiles && !slices.Contains(ordered, folder) {
			t.Errorf("%s has %d files: give it a reading order in doc.go, and name it in ordered", folder, p.files)
		}
	}
}

// size of a package, without tests, generated files and its documentation.
type size struct{ files, lines int }

// packages are all of the repository, by folder.
func packages(t *testing.T) map[string]size {
	t.Helper()
	found := map[string]size{}
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != repository && (name == "testdata" || name == "bin" || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case !isSource(name) || name == "doc.go":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(repository, filepath.Dir(path))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		p := found[folder]
		found[folder] = size{files: p.files + 1, lines: p.lines + bytes.Count(text, []byte("\n"))}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// isSource reports whether a file is Go that is read: neither a test nor generated.
func isSource(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "zz_")
}

func TestFilesUseEachOtherInReadingOrder(t *testing.T) {
	exports := exportData(t)
	for _, folder := range ordered {
		t.Run(folder, func(t *testing.T) {
			p, err := load(folder, exports)
			if err != nil {
				t.Fatal(err)
			}
			order, err := readingOrder(p.doc)
			if err != nil {
				t.Fatalf("the documentation of %s: %v", folder, err)
			}
			for _, file := range p.files() {
				if !slices.Contains(order.files, file) {
					t.Errorf("the documentation of %s does not name %s in its reading order", folder, file)
				}
			}
			for _, u := range p.uses {
				if order.isAgainst(u) {
					t.Errorf("%s uses %s of %s, against the reading order of its package", u.from, u.name, u.to)
				}
			}
		})
	}
}

// order is the reading order of a package.
type order struct {
	files []string
	// downwards means that a file uses the files after it.
	downwards bool
}

var fileName = regexp.MustCompile(`\b[a-z0-9_]+\.go\b`)

// readingOrder finds the files in the part of a package's documentation that begins with "Reading order".
func readingOrder(doc string) (order, error) {
	var o order
	_, text, ok := strings.Cut(strings.Join(strings.Fields(doc), " "), "Reading order")
	if !ok {
		return o, errors.New(`no "Reading order"`)
	}
	before, after := strings.Contains(text, "uses only files before it"), strings.Contains(text, "uses only files after it")
	if before == after {
		return o, errors.New(`say "A file uses only files before it" or "after it"`)
	}
	o.downwards = after
	for _, name := range fileName.FindAllString(text, -1) {
		if !slices.Contains(o.files, name) && name != "doc.go" {
			o.files = append(o.files, name)
		}
	}
	return o, nil
}

func (o order) isAgainst(u use) bool {
	from, to := slices.Index(o.files, u.from), slices.Index(o.files, u.to)
	if from < 0 || to < 0 {
		return false
	}
	return (to > from) != o.downwards
}

// use says that one file uses what another file of the same package declares.
type use struct{ from, to, name string }

// source is a package that is type-checked.
type source struct {
	doc  string
	uses []use // sorted, each once
	all  []string
}

func (s source) files() []string { return s.all }

// load parses and type-checks the package in a folder, and finds what its files use of each other: constants, variables,
// types, functions and methods. A field belongs to its type.
func load(folder string, exports map[string]string) (source, error) {
	var s source
	set := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(repository, folder, "*.go"))
	if err != nil {
		return s, err
	}
	var files []*ast.File
	for _, name := range names {
		base := filepath.Base(name)
		if strings.HasSuffix(base, "_test.go") {
			continue
		}
		if base != "doc.go" && isSource(base) {
			s.all = append(s.all, base)
		}
		// A file of another operating system or build tag has its place in the order, but declares the same names.
		if built, err := build.Default.MatchFile(filepath.Dir(name), base); err != nil || !built {
			if err != nil {
				return s, err
			}
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return s, err
		}
		files = append(files, file)
		if file.Doc != nil {
			s.doc = file.Doc.Text()
		}
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	checked := types.Config{Importer: importer.ForCompiler(set, "gc", open)}
	p, err := checked.Check(module+"/"+folder, set, files, info)
	if err != nil {
		return s, err
	}
	found := map[use]bool{}
	for name, object := range info.Uses {
		if object.Pkg() != p || object.Parent() != p.Scope() && !isMethod(object) {
			continue
		}
		from, to := filepath.Base(set.Position(name.Pos()).Filename), filepath.Base(set.Position(object.Pos()).Filename)
		if from != to {
			found[use{from, to, object.Name()}] = true
		}
	}
	s.uses = slices.SortedFunc(maps.Keys(found), func(a, b use) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.name, b.name))
	})
	return s, nil
}

func isMethod(o types.Object) bool {
	f, ok := o.(*types.Func)
	return ok && f.Signature().Recv() != nil
}

// exportData compiles the packages and all that they import, and finds the files of their declarations by import path.
func exportData(t *testing.T) map[string]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}")
	for _, folder := range ordered {
		list.Args = append(list.Args, module+"/"+folder)
	}
	list.Dir = repository
	list.Stderr = t.Output()
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			files[path] = file
		}
	}
	return files
}

func TestReadingOrder(t *testing.T) {
	for name, test := range map[string]struct {
		doc     string
		uses    use
		against bool
		wrong   bool
	}{
		"upwards":               {doc: "Reading order: a.go, then b.go. A file uses only files before it.", uses: use{"b.go", "a.go", "x"}},
		"against upwards":       {doc: "Reading order: a.go, then b.go. A file uses only files before it.", uses: use{"a.go", "b.go", "x"}, against: true},
		"downwards":             {doc: "# Reading order\n\na.go and\nb.go. A file uses only\nfiles after it.", uses: use{"a.go", "b.go", "x"}},
		"against downwards":     {doc: "# Reading order\n\na.go and b.go. A file uses only files after it.", uses: use{"b.go", "a.go", "x"}, against: true},
		"named before the list": {doc: "b.go is important. Reading order: a.go, b.go. A file uses only files before it.", uses: use{"b.go", "a.go", "x"}},
		"no order":              {doc: "Read a.go.", wrong: true},
		"no direction":          {doc: "Reading order: a.go, b.go.", wrong: true},
	} {
		got, err := readingOrder(test.doc)
		if (err != nil) != test.wrong {
			t.Errorf("%s: %v, want an error: %v", name, err, test.wrong)
		}
		if err == nil && got.isAgainst(test.uses) != test.against {
			t.Errorf("%s: %v by %v: want against it: %v", name, test.uses, got, test.against)
		}
	}
}
