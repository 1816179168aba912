package main

import (
	"errors"
	"fmt"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// surfacePage returns the exported API, so that a review shows what a change adds, changes or removes: each exported
// identifier, with the exported fields and methods of types and the values of constants. It omits promoted methods.
func surfacePage() (string, error) {
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo
	all, err := packages.Load(&packages.Config{Mode: mode, Dir: repository}, "./...")
	if err != nil {
		return "", err
	}
	slices.SortFunc(all, func(a, b *packages.Package) int { return strings.Compare(a.PkgPath, b.PkgPath) })
	var page strings.Builder
	page.WriteString("# The exported surface of module 1: what an embedder can name. Do not edit: make generate writes it.\n")
	for _, p := range all {
		for _, e := range p.Errors {
			err = errors.Join(err, e)
		}
		if p.Name == "main" || strings.Contains(p.PkgPath+"/", "/internal/") || p.Types == nil {
			continue // no other module can import it
		}
		if lines := surfaceOf(p.Types); len(lines) > 0 {
			fmt.Fprintf(&page, "\npackage %s\n  %s\n", strings.TrimPrefix(p.PkgPath, path.Dir(module)+"/"), strings.Join(lines, "\n  "))
		}
	}
	return page.String(), err
}

// surface has a line for each exported identifier, field and method of a package, in the form of a declaration.
type surface struct {
	qualify types.Qualifier
	lines   []string
}

func surfaceOf(p *types.Package) []string {
	s := surface{qualify: func(other *types.Package) string { return shortName(other, p) }}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			s.add(o)
		}
	}
	slices.Sort(s.lines)
	return s.lines
}

// versioned is the last element of the path of a package that is named after a version of an API.
var versioned = regexp.MustCompile(`^v[0-9]`)

// shortName is the name by which Go files import a package, as metav1.
func shortName(p, within *types.Package) string {
	switch {
	case p == within:
		return ""
	case versioned.MatchString(p.Name()):
		return path.Base(path.Dir(p.Path())) + p.Name()
	}
	return p.Name()
}

func (s *surface) add(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		kind := " " + s.name(o.Type())
		if basic, ok := o.Type().(*types.Basic); ok && basic.Info()&types.IsUntyped != 0 {
			kind = ""
		}
		s.lines = append(s.lines, "const "+o.Name()+kind+" = "+o.Val().ExactString())
	case *types.TypeName:
		if named, ok := o.Type().(*types.Named); ok && !o.IsAlias() {
			s.addType(named)
			return
		}
		s.lines = append(s.lines, types.ObjectString(o, s.qualify))
	default:
		s.lines = append(s.lines, types.ObjectString(o, s.qualify))
	}
}

// addType has each field of a struct and each method of an interface on a line of its own.
func (s *surface) addType(named *types.Named) {
	for m := range named.Methods() {
		if m.Exported() {
			s.lines = append(s.lines, types.ObjectString(m, s.qualify))
		}
	}
	head := "type " + s.name(named)
	switch t := named.Underlying().(type) {
	case *types.Struct:
		s.lines = append(s.lines, head+" struct")
		for f := range t.Fields() {
			switch {
			case f.Embedded() && f.Exported():
				s.lines = append(s.lines, head+" struct, embedded "+s.name(f.Type()))
			case f.Exported():
				s.lines = append(s.lines, head+" struct, "+f.Name()+" "+s.name(f.Type()))
			}
		}
	case *types.Interface:
		s.lines = append(s.lines, head+" interface")
		for m := range t.ExplicitMethods() {
			if m.Exported() {
				s.lines = append(s.lines, head+" interface, "+m.Name()+strings.TrimPrefix(s.name(m.Type()), "func"))
			}
		}
		for e := range t.EmbeddedTypes() {
			s.lines = append(s.lines, head+" interface, embedded "+s.name(e))
		}
	default:
		s.lines = append(s.lines, head+" "+s.name(t))
	}
}

func (s *surface) name(t types.Type) string { return types.TypeString(t, s.qualify) }
