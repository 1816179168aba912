package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// exported is what one package of module 1 exports.
type exported struct {
	path  string   // from the module's last element
	lines []string // one per identifier and per field, in the form of a declaration
}

// surfacePage lists what an embedder can name, so that a review sees what a change adds, changes or removes. It is read from
// syntax alone: a promoted method is not listed, and a constant has its type where the source gives one.
func surfacePage() (string, error) {
	packages, err := importable(repository)
	if err != nil {
		return "", err
	}
	var page strings.Builder
	page.WriteString("# The exported surface of module 1: what an embedder can name. Do not edit: make generate writes it.\n")
	for _, p := range packages {
		fmt.Fprintf(&page, "\npackage %s\n", p.path)
		for _, line := range p.lines {
			page.WriteString("  " + line + "\n")
		}
	}
	return page.String(), nil
}

// importable finds the packages of the module in dir that another module can import, sorted by path.
func importable(dir string) ([]exported, error) {
	var all []exported
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if path != dir && isOutside(path) {
			return filepath.SkipDir
		}
		p, err := surfaceOf(path)
		if err != nil {
			return err
		}
		if len(p.lines) == 0 {
			return nil
		}
		relative, err := filepath.Rel(dir, path)
		p.path = filepath.ToSlash(filepath.Join("godwit", relative))
		all = append(all, p)
		return err
	})
	return all, err
}

// isOutside tells whether no other module can import what is below a folder as a part of module 1.
func isOutside(path string) bool {
	name := filepath.Base(path)
	if name == "internal" || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil
}

// surfaceOf reads the exported declarations of the package in one folder.
func surfaceOf(dir string) (exported, error) {
	var p exported
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return p, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return p, err
		}
		if parsed.Name.Name == "main" || !ast.FileExports(parsed) {
			continue
		}
		for _, declaration := range parsed.Decls {
			p.add(set, declaration, func(e ast.Expr) (string, bool) { return stringValue(dir, parsed, e) })
		}
	}
	slices.Sort(p.lines)
	return p, nil
}

// add lists a declaration from which ast.FileExports has removed what is not exported.
func (p *exported) add(set *token.FileSet, declaration ast.Decl, text func(ast.Expr) (string, bool)) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil || isExportedType(d.Recv.List[0].Type) {
			p.addFunc(set, d)
		}
	case *ast.GenDecl:
		var before ast.Expr // the type of the constant before, which one without a value repeats
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				p.addType(set, s)
			case *ast.ValueSpec:
				if s.Type == nil && len(s.Values) == 0 {
					s.Type = before
				}
				before = s.Type
				for _, name := range s.Names {
					p.addValue(set, d.Tok.String()+" "+name.Name, s, text)
				}
			}
		}
	}
}

// addValue lists a variable or a constant, with its value where that is a literal or a string.
func (p *exported) addValue(set *token.FileSet, line string, s *ast.ValueSpec, text func(ast.Expr) (string, bool)) {
	if s.Type != nil {
		line += " " + source(set, s.Type)
	}
	if len(s.Values) == 1 {
		if literal, ok := s.Values[0].(*ast.BasicLit); ok {
			line += " = " + literal.Value
		} else if value, ok := text(s.Values[0]); ok && strings.HasPrefix(line, "const ") {
			line += " = " + strconv.Quote(value)
		}
	}
	p.lines = append(p.lines, line)
}

// addType lists a type, and each field of a struct and each method of an interface on a line of its own.
func (p *exported) addType(set *token.FileSet, s *ast.TypeSpec) {
	var members *ast.FieldList
	kind := ""
	switch t := s.Type.(type) {
	case *ast.StructType:
		members, kind = t.Fields, "struct"
	case *ast.InterfaceType:
		members, kind = t.Methods, "interface"
	}
	if members == nil {
		p.lines = append(p.lines, "type "+source(set, s))
		return
	}
	name := s.Name.Name
	p.lines = append(p.lines, "type "+name+" "+kind)
	for _, m := range members.List {
		of := source(set, m.Type)
		if len(m.Names) == 0 {
			p.lines = append(p.lines, fmt.Sprintf("type %s %s, embedded %s", name, kind, of))
		}
		for _, n := range m.Names {
			p.lines = append(p.lines, fmt.Sprintf("type %s %s, %s %s", name, kind, n.Name, of))
		}
	}
}

// isExportedType tells whether a receiver's type has an exported name.
func isExportedType(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StarExpr:
		return isExportedType(e.X)
	case *ast.IndexExpr:
		return isExportedType(e.X)
	case *ast.IndexListExpr:
		return isExportedType(e.X)
	case *ast.Ident:
		return e.IsExported()
	}
	return false
}

// addFunc lists a function or a method.
func (p *exported) addFunc(set *token.FileSet, d *ast.FuncDecl) {
	d.Doc, d.Body = nil, nil
	p.lines = append(p.lines, source(set, d))
}

// source prints a node on one line.
func source(set *token.FileSet, node any) string {
	if s, ok := node.(*ast.TypeSpec); ok {
		s.Doc, s.Comment = nil, nil
	}
	var text bytes.Buffer
	if err := printer.Fprint(&text, set, node); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(text.String()), " ")
}
