package matrix

import (
	"errors"
	"fmt"
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

const (
	repository = "../../.." // from here
	page       = "docs/reference/hub-test-matrix.md"
	scripts    = "cmd/hub/testdata/scripts"
	// scriptTest plays the scripts, each of which is a test with numbers of its own.
	scriptTest = "TestScripts"
)

var (
	row       = regexp.MustCompile(`^\| (H\d+) \|.* \|([^|]*)\|$`)
	reference = regexp.MustCompile("`((?:Test|Fuzz)\\w+)(?:/([\\w-]+))?` ([\\w/]+)")
	// marker is the line of a comment with the numbers of a test.
	marker = regexp.MustCompile(`(?m)^(?://|#)? ?Matrix: (H\d+(?:, H\d+)*)\.$`)
)

// numbered is a test with one of its numbers.
type numbered struct{ number, folder, test string }

func (n numbered) String() string { return fmt.Sprintf("%s %s in %s", n.number, n.test, n.folder) }

// TestEachNumberHasItsTests compares the page with the comments of the tests, in both directions.
func TestEachNumberHasItsTests(t *testing.T) {
	promised, subtests := fromPage(t)
	marked, source := fromTests(t)
	for n := range promised {
		if !marked[n] {
			t.Errorf("%s says %s, and there is no such test, or its comment has no line %q", page, n, "Matrix: "+n.number+".")
		}
	}
	for n := range marked {
		if !promised[n] {
			t.Errorf("a comment says %s, and %s does not", n, page)
		}
	}
	for n, sub := range subtests {
		if text := source[n.folder+" "+n.test]; !strings.Contains(text, `"`+sub+`"`) {
			t.Errorf("%s says %s, case %s, and the test has no such case", page, n, sub)
		}
	}
}

// TestNumbersAreComplete finds a number that is left out, or there twice.
func TestNumbersAreComplete(t *testing.T) {
	next := 1
	for line := range strings.Lines(read(t, page)) {
		m := row.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			if strings.HasPrefix(line, "| H") {
				t.Errorf("%s: no row of four columns: %s", page, line)
			}
			continue
		}
		if want := fmt.Sprintf("H%d", next); m[1] != want {
			t.Errorf("%s: row %s, want %s", page, m[1], want)
		}
		if len(reference.FindAllString(m[2], -1)) == 0 {
			t.Errorf("%s: row %s names no test", page, m[1])
		}
		next++
	}
	if next < 50 {
		t.Errorf("%s has %d rows, which is no matrix", page, next-1)
	}
}

// fromPage reads the tests that the page names, and of some of them a case.
func fromPage(t *testing.T) (promised map[numbered]bool, subtests map[numbered]string) {
	t.Helper()
	promised, subtests = map[numbered]bool{}, map[numbered]string{}
	for line := range strings.Lines(read(t, page)) {
		m := row.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		for _, r := range reference.FindAllStringSubmatch(m[2], -1) {
			test, sub, folder := r[1], r[2], r[3]
			n := numbered{m[1], folder, test}
			if test == scriptTest {
				n = numbered{m[1], scripts, sub}
			} else if sub != "" {
				subtests[n] = sub
			}
			promised[n] = true
		}
	}
	return promised, subtests
}

// fromTests reads the numbers in comments of all tests of hubs, and the text of those tests.
func fromTests(t *testing.T) (marked map[numbered]bool, source map[string]string) {
	t.Helper()
	marked, source = map[numbered]bool{}, map[string]string{}
	mark := func(folder, test, comment string) {
		for _, m := range marker.FindAllStringSubmatch(comment, -1) {
			for number := range strings.SplitSeq(m[1], ", ") {
				marked[numbered{number, folder, test}] = true
			}
		}
	}
	for _, root := range []string{"test/hub", "cmd"} {
		err := filepath.WalkDir(filepath.Join(repository, root), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(repository, path)
			if err != nil || entry.IsDir() {
				return err
			}
			folder := filepath.ToSlash(filepath.Dir(relative))
			switch {
			case folder == scripts:
				mark(folder, entry.Name(), read(t, relative))
			case strings.HasSuffix(path, "_test.go"):
				return functions(path, func(name, doc, text string) {
					source[folder+" "+name] = text
					mark(folder, name, doc)
				})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return marked, source
}

// functions calls a function for each test of a file, with its comment and its text.
func functions(path string, each func(name, doc, text string)) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.ParseComments)
	if err != nil {
		return errors.Join(errors.New(path), err)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !slices.ContainsFunc([]string{"Test", "Fuzz"}, func(kind string) bool { return strings.HasPrefix(f.Name.Name, kind) }) {
			continue
		}
		each(f.Name.Name, f.Doc.Text(), string(text[files.Position(f.Pos()).Offset:files.Position(f.End()).Offset]))
	}
	return nil
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReferences finds a number that other pages name and the matrix does not have.
func TestReferences(t *testing.T) {
	rows := strings.Count(read(t, page), "\n| H")
	number := regexp.MustCompile(`\bH(\d+)\b`)
	for _, other := range []string{"docs/explanation/hub-security.md"} {
		found := number.FindAllStringSubmatch(read(t, other), -1)
		if len(found) == 0 {
			t.Errorf("%s names no number", other)
		}
		for _, m := range found {
			if n, err := strconv.Atoi(m[1]); err != nil || n < 1 || n > rows {
				t.Errorf("%s names %s, and %s has H1 to H%d", other, m[0], page, rows)
			}
		}
	}
}

// TestRefusals: the reference of the protocol has each reason for which a message is refused.
func TestRefusals(t *testing.T) {
	reason := regexp.MustCompile(`(?i)\brefusal\s+= "(\w+)"`)
	protocol := read(t, "docs/reference/hub-protocol.md")
	for _, file := range []string{"cmd/hub/agent/open.go", "cmd/hub/manager/receive.go"} {
		found := reason.FindAllStringSubmatch(read(t, file), -1)
		if len(found) < 5 {
			t.Errorf("%s has %d reasons, want more: they are elsewhere now", file, len(found))
		}
		for _, m := range found {
			if !strings.Contains(protocol, "\n| `"+m[1]+"` |") {
				t.Errorf("docs/reference/hub-protocol.md has no row about %s of %s", m[1], file)
			}
		}
	}
}
