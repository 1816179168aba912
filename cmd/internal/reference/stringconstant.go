package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// stringValue is the value of a string that is written as a literal, as a constant of module 1 or as a sum of these. Users see
// such strings in a cluster.
func stringValue(folder string, file *ast.File, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, first := stringValue(folder, file, e.X)
		right, second := stringValue(folder, file, e.Y)
		return left + right, first && second && e.Op == token.ADD
	case *ast.Ident:
		return stringConstant(folder, e.Name)
	case *ast.SelectorExpr:
		if name, ok := e.X.(*ast.Ident); ok {
			if of, ok := folderOf(file, name.Name); ok {
				return stringConstant(of, e.Sel.Name)
			}
		}
	}
	return "", false
}

// folderOf is the folder of a package of module 1 that a file imports by its own name.
func folderOf(file *ast.File, name string) (string, bool) {
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil || i.Name != nil || filepath.Base(path) != name {
			continue
		}
		if folder, ok := strings.CutPrefix(path, module+"/"); ok {
			return filepath.Join(repository, filepath.FromSlash(folder)), true
		}
	}
	return "", false
}

// stringConstant is the value of a constant of the package in a folder, exported or not.
func stringConstant(folder, name string) (string, bool) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return "", false
	}
	for _, f := range names {
		file, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil || strings.HasSuffix(f, "_test.go") {
			continue
		}
		if value := initializer(file, name); value != nil {
			return stringValue(folder, file, value)
		}
	}
	return "", false
}

// initializer is what a constant of a file is set to; nil where the file does not declare the constant, or without a value.
func initializer(file *ast.File, name string) ast.Expr {
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, s := range group.Specs {
			spec, ok := s.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for i, n := range spec.Names {
				if n.Name == name && i < len(spec.Values) {
					return spec.Values[i]
				}
			}
		}
	}
	return nil
}
