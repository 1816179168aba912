package providerlint

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"strconv"
	"strings"

	"github.com/godwit-dev/godwit"
)

// adapterPath is the package that declares Exception and Resource.
const adapterPath = "github.com/godwit-dev/godwit/externalname/crossplane"

// goPackage is the files of one folder, and its constants by name.
type goPackage struct {
	files     map[string]*ast.File
	positions *token.FileSet
	constants map[string]ast.Expr
}

func parsePackage(names []string) (goPackage, error) {
	p := goPackage{files: map[string]*ast.File{}, positions: token.NewFileSet(), constants: map[string]ast.Expr{}}
	for _, name := range names {
		file, err := parser.ParseFile(p.positions, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return p, fmt.Errorf("read Go: %w", err)
		}
		p.files[name] = file
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				p.addConstants(g)
			}
		}
	}
	return p, nil
}

func (p goPackage) addConstants(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		values, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, name := range values.Names {
			if i < len(values.Values) {
				p.constants[name.Name] = values.Values[i]
			}
		}
	}
}

// check finds the literals of the adapter's types in a file, and reports how many there are.
func (p goPackage) check(name string) (findings []Finding, literals int) {
	file := p.files[name]
	adapter := importName(file)
	if adapter == "" {
		return nil, 0
	}
	report := func(at ast.Node, subject string, reason *godwit.Reason, message string) {
		findings = append(findings, Finding{File: name, Line: p.positions.Position(at.Pos()).Line, Subject: subject, Finding: godwit.Finding{Reason: reason, Message: message, Fix: reason.Fix}})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		switch {
		case isType(literal.Type, adapter, "Exception"):
			literals++
			p.checkException(literal, report)
		case isType(literal.Type, adapter, "Resource"):
			literals++
			if valueOf(literal, "KeyFromStatus") != nil && valueOf(literal, "Exceptions") == nil {
				report(literal, "Resource", ExceptionMissing, "KeyFromStatus needs an exception of rule NameFromCreate. Add Exceptions with a reason")
			}
		case isListOf(literal.Type, adapter, "Exception"):
			for _, element := range literal.Elts {
				if one, ok := element.(*ast.CompositeLit); ok && one.Type == nil {
					literals++
					p.checkException(one, report)
				}
			}
		}
		return true
	})
	return findings, literals
}

func (p goPackage) checkException(literal *ast.CompositeLit, report func(ast.Node, string, *godwit.Reason, string)) {
	reason := valueOf(literal, "Reason")
	if reason == nil && len(literal.Elts) == 2 {
		if _, keyed := literal.Elts[1].(*ast.KeyValueExpr); !keyed {
			reason = literal.Elts[1]
		}
	}
	if reason == nil {
		report(literal, "Exception", ExceptionWithoutReason, "the exception has no reason. Set Reason: the reference of the kind prints it")
		return
	}
	text, known := p.text(reason, 0)
	switch {
	case !known:
		report(reason, "Exception", ExceptionUnreadable, "the reason is not a constant text of this package. Write it in place")
	case strings.TrimSpace(text) == "":
		report(reason, "Exception", ExceptionWithoutReason, "the reason is empty. Write it: the reference of the kind prints it")
	}
}

// constantDepth bounds how many constants refer to each other: a file that does not compile may have a cycle.
const constantDepth = 20

// text returns the value of a constant string expression.
func (p goPackage) text(e ast.Expr, depth int) (string, bool) {
	if depth > constantDepth {
		return "", false
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		value := constant.MakeFromLiteral(e.Value, e.Kind, 0)
		if value.Kind() != constant.String {
			return "", false
		}
		return constant.StringVal(value), true
	case *ast.ParenExpr:
		return p.text(e.X, depth+1)
	case *ast.BinaryExpr:
		left, ok := p.text(e.X, depth+1)
		right, also := p.text(e.Y, depth+1)
		return left + right, ok && also && e.Op == token.ADD
	case *ast.Ident:
		if value, found := p.constants[e.Name]; found {
			return p.text(value, depth+1)
		}
	}
	return "", false
}

// importName returns the name with which a file imports the adapter, or empty if it does not.
func importName(file *ast.File) string {
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		switch {
		case err != nil || path != adapterPath:
		case i.Name != nil:
			return i.Name.Name
		default:
			return "crossplane"
		}
	}
	return ""
}

// isType reports whether an expression is a type of the adapter, with type arguments or without.
func isType(e ast.Expr, adapter, name string) bool {
	switch e := e.(type) {
	case *ast.IndexExpr:
		return isType(e.X, adapter, name)
	case *ast.IndexListExpr:
		return isType(e.X, adapter, name)
	case *ast.SelectorExpr:
		from, ok := e.X.(*ast.Ident)
		return ok && from.Name == adapter && e.Sel.Name == name
	case *ast.Ident:
		return adapter == "." && e.Name == name
	}
	return false
}

func isListOf(e ast.Expr, adapter, name string) bool {
	list, ok := e.(*ast.ArrayType)
	return ok && isType(list.Elt, adapter, name)
}

// valueOf returns the value of a key in a literal, or nil.
func valueOf(literal *ast.CompositeLit, name string) ast.Expr {
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
				return pair.Value
			}
		}
	}
	return nil
}
