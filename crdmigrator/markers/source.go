package markers

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// source has the API group and the types of a file.
type source struct {
	group string // of the whole package, although only one file names it
	types []declaration
}

// declaration is a type and the markers above it.
type declaration struct {
	name string
	line int
	// object means that the type is a struct that is not a list.
	object bool
	// markers are the markers that controller-gen reads for the type, and lost
	// those above the type that it does not read.
	markers, lost []marker
}

func (d declaration) root() bool { return d.object && slices.ContainsFunc(d.markers, marker.isRoot) }

func (d declaration) storage() bool { return slices.ContainsFunc(d.markers, marker.isStorage) }

// reader reads one file.
type reader struct {
	positions *token.FileSet
	comments  []*ast.CommentGroup // without those behind a declaration, in order
}

// readSource reads Go source from text, or from the file if text is nil.
func readSource(name string, text any) (source, error) {
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	var s source
	if ignored(file) {
		return s, nil
	}
	trailing := map[*ast.CommentGroup]bool{nil: true}
	for _, d := range file.Decls {
		if d, ok := d.(*ast.GenDecl); ok {
			for _, spec := range d.Specs {
				trailing[trailingOf(spec)] = true
			}
		}
	}
	r := reader{positions: positions}
	for _, group := range file.Comments {
		if !trailing[group] {
			r.comments = append(r.comments, group)
		}
	}
	for _, m := range r.markers(file.Comments) {
		if group, ok := m.group(); ok {
			s.group = group
		}
	}
	end := file.Name.End()
	for _, d := range file.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.TYPE {
			s.types = append(s.types, r.declarations(d, end)...)
		}
		end = d.End()
	}
	return s, nil
}

// ignored reports whether //go:build ignore keeps the file out of every package. Any other tag
// may be set when controller-gen runs.
func ignored(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() > file.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			expression, err := constraint.Parse(c.Text)
			tag, ok := expression.(*constraint.TagExpr)
			return err == nil && ok && tag.Tag == "ignore"
		}
	}
	return false
}

func trailingOf(spec ast.Spec) *ast.CommentGroup {
	switch spec := spec.(type) {
	case *ast.ImportSpec:
		return spec.Comment
	case *ast.TypeSpec:
		return spec.Comment
	case *ast.ValueSpec:
		return spec.Comment
	}
	return nil
}

// declarations reads the types of one declaration; before is the end of the preceding
// declaration. Within parentheses, each type has comments of its own.
func (r reader) declarations(d *ast.GenDecl, before token.Pos) []declaration {
	var types []declaration
	for _, spec := range d.Specs {
		spec, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		documentation, from, to := d.Doc, before, d.Pos()
		if d.Lparen.IsValid() {
			documentation, from, to = spec.Doc, max(before, d.Lparen), spec.Pos()
		}
		own, lost := r.above(from, to, documentation)
		types = append(types, declaration{
			name:    spec.Name.Name,
			line:    r.line(spec.Name.Pos()),
			object:  isObject(spec),
			markers: r.markers(own),
			lost:    r.markers(lost),
		})
		before = spec.End()
	}
	return types
}

// above finds the comments of a type: its documentation and the next above it.
func (r reader) above(from, to token.Pos, documentation *ast.CommentGroup) (own, lost []*ast.CommentGroup) {
	for _, group := range r.comments {
		if group.Pos() >= from && group.End() <= to && group != documentation {
			lost = append(lost, group)
		}
	}
	if last := len(lost) - 1; last >= 0 {
		own, lost = append(own, lost[last]), lost[:last]
	}
	if documentation != nil {
		own = append(own, documentation)
	}
	return own, lost
}

func (r reader) markers(groups []*ast.CommentGroup) []marker {
	var all []marker
	for _, group := range groups {
		for _, c := range group.List {
			if m, ok := newMarker(c.Text, r.line(c.Pos())); ok {
				all = append(all, m)
			}
		}
	}
	return all
}

// line is the line that an editor shows: it ignores //line directives.
func (r reader) line(pos token.Pos) int { return r.positions.PositionFor(pos, false).Line }

// isObject reports whether the type is a struct, but not a list of objects.
func isObject(spec *ast.TypeSpec) bool {
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return false
	}
	var items, object bool
	for _, field := range structure.Fields.List {
		switch {
		case embeds(field, "ListMeta"):
			return false
		case embeds(field, "ObjectMeta"):
			object = true
		}
		items = items || slices.ContainsFunc(field.Names, func(n *ast.Ident) bool { return n.Name == "Items" })
	}
	return object || !items || !strings.HasSuffix(spec.Name.Name, "List")
}

func embeds(field *ast.Field, name string) bool {
	if len(field.Names) > 0 {
		return false
	}
	switch t := field.Type.(type) {
	case *ast.Ident:
		return t.Name == name
	case *ast.SelectorExpr:
		return t.Sel.Name == name
	}
	return false
}
