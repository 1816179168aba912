package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSurfaceOf: a change of any of these lines is a change for embedders.
func TestSurfaceOf(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		want   []string
	}{
		"constants have the values that users see": {
			"const prefix = `godwit.dev/`; type kind string; const Label = prefix + \"x\"; const A kind = \"a\"; const hidden = 1",
			[]string{`const A kind = "a"`, `const Label = "godwit.dev/x"`},
		},
		"enumerations have numbers": {
			"type Outcome uint8; const (_ Outcome = iota; Migrated)",
			[]string{"const Migrated Outcome = 1", "type Outcome uint8"},
		},
		"fields and methods": {
			"import \"io\"; type S struct { io.Reader; A, B []S; c int }; func (s *S) Do(n int) error { return nil }; func (s S) do() {}",
			[]string{
				"func (*S).Do(n int) error", "type S struct", "type S struct, A []S", "type S struct, B []S", "type S struct, embedded io.Reader",
			},
		},
		"interfaces": {
			"import \"io\"; type I interface { io.Reader; Do(n int) (a, b int) }",
			[]string{"type I interface", "type I interface, Do(n int) (a int, b int)", "type I interface, embedded io.Reader"},
		},
		"type parameters": {
			"type Page[T any] struct { Items []T }; func First[T any](p Page[T]) T { return p.Items[0] }",
			[]string{"func First[T any](p Page[T]) T", "type Page[T any] struct", "type Page[T any] struct, Items []T"},
		},
		"aliases and variables": {
			"import \"time\"; type D = time.Duration; var Err error; var err error",
			[]string{"type D = time.Duration", "var Err error"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, "p.go", "package p;"+test.source, 0)
			if err != nil {
				t.Fatal(err)
			}
			config := types.Config{Importer: importer.ForCompiler(set, "source", nil)}
			p, err := config.Check("example.com/p", set, []*ast.File{file}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, surfaceOf(p)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
