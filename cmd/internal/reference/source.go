package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// constant is a constant with its comment.
type constant struct{ name, value, doc string }

// constants returns the constants of the group whose comment has a prefix.
func constants(file, comment string) ([]constant, error) {
	parsed, err := parse(file)
	if err != nil {
		return nil, err
	}
	for _, d := range parsed.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST || !strings.HasPrefix(group.Doc.Text(), comment) {
			continue
		}
		var all []constant
		for _, s := range group.Specs {
			c, err := constantOf(s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			all = append(all, c)
		}
		return all, nil
	}
	return nil, fmt.Errorf("%s has no constants whose comment begins with %q", file, comment)
}

func constantOf(s ast.Spec) (constant, error) {
	value := s.(*ast.ValueSpec) //nolint:forcetypeassert // what else is in a group of constants
	c := constant{name: value.Names[0].Name}
	literal, ok := value.Values[0].(*ast.BasicLit)
	if !ok {
		return c, fmt.Errorf("%s is not a literal", c.name)
	}
	var err error
	if c.value, err = strconv.Unquote(literal.Value); err != nil {
		return c, fmt.Errorf("%s: %w", c.name, err)
	}
	doc := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(value.Doc.Text(), c.name), ":"), " means that")
	if strings.TrimSpace(doc) == "" {
		return c, fmt.Errorf("%s has no comment", c.name)
	}
	c.doc = strings.TrimSpace(doc)
	return c, nil
}

// field is a field of a struct, with its JSON name.
type field struct{ name, kind, doc string }

// structs returns the structs of a file, by name.
func structs(file string) (map[string][]field, error) {
	parsed, err := parse(file)
	if err != nil {
		return nil, err
	}
	all := map[string][]field{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if body, ok := spec.Type.(*ast.StructType); ok {
			all[spec.Name.Name] = fieldsOf(body)
		}
		return false
	})
	return all, nil
}

func fieldsOf(body *ast.StructType) []field {
	var all []field
	for _, f := range body.Fields.List {
		if len(f.Names) == 0 || f.Tag == nil {
			continue
		}
		tag, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
		all = append(all, field{name: tag, kind: typeName(f.Type), doc: fieldComment(tag, f.Doc.Text())})
	}
	return all
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.ArrayType:
		return "[]" + typeName(e.Elt)
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	}
	return ""
}

// fieldComment returns the comment of a field for users: without the Go name at its beginning, and with JSON names of
// fields within the text.
func fieldComment(name, doc string) string {
	first, rest, _ := strings.Cut(strings.Join(strings.Fields(doc), " "), " ")
	if !strings.EqualFold(strings.TrimSuffix(first, ":"), name) {
		return sentence(doc)
	}
	verb, said, _ := strings.Cut(rest, " ")
	switch {
	case strings.HasSuffix(first, ":"):
		return sentence(rest)
	case verb == "is", verb == "are":
		return sentence(said)
	case name == strings.ToLower(name): // a word like any other
		return sentence(doc)
	}
	return sentence(code(name) + " " + rest)
}

func parse(file string) (*ast.File, error) {
	return parser.ParseFile(token.NewFileSet(), filepath.Join(repository, filepath.FromSlash(file)), nil, parser.ParseComments)
}

const repository = "../../.." // of the repository, from here

const module = "github.com/godwit-dev/godwit"
