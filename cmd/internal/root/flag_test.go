package root_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-dev/godwit/cmd/internal/root"
)

// severalTexts are the flags whose usage differs between commands, with the reason.
var severalTexts = map[string]string{
	"all":      "names what all are",
	"dry-run":  "lists the values of the command",
	"filename": "names what is in the file",
	"label":    "a label to set, and the label of types to check",
	"output":   "lists the formats of the command",
	"resource": "may be repeated where names are saved",
	"selector": "names what has the labels",
	"user":     "of rbac, a subject; of all others, kubectl's user of the kubeconfig",
}

// TestFlagHasOneText walks the tree of commands.
func TestFlagHasOneText(t *testing.T) {
	commands := map[string]map[string][]string{} // by flag and text
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if commands[f.Name] == nil {
				commands[f.Name] = map[string][]string{}
			}
			commands[f.Name][f.Usage] = append(commands[f.Name][f.Usage], c.CommandPath())
		})
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(root.Command())
	for name, texts := range commands {
		reason, allowed := severalTexts[name]
		switch {
		case len(texts) > 1 && !allowed:
			t.Errorf("--%s has %d texts: register it by one function, in package frame if commands of several domains have it:\n%v", name, len(texts), texts)
		case len(texts) == 1 && allowed:
			t.Errorf("--%s has one text: remove it from the exceptions (%s)", name, reason)
		}
	}
}

// severalPlaces are the flags that two files register, with the reason.
var severalPlaces = map[string]string{
	"label":    severalTexts["label"],
	"resource": severalTexts["resource"],
}

// TestFlagIsRegisteredOnce reads the source of all commands.
func TestFlagIsRegisteredOnce(t *testing.T) {
	places, parsed, constants := map[string][]string{}, map[string]*ast.File{}, map[string]string{}
	files := token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed[path] = file
		ast.Inspect(file, func(n ast.Node) bool {
			constantOf(n, constants)
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, file := range parsed {
		ast.Inspect(file, func(n ast.Node) bool {
			if name, ok := flagOf(n, constants); ok && !slices.Contains(places[name], path) {
				places[name] = append(places[name], path)
			}
			return true
		})
	}
	if len(places) < 50 {
		t.Fatalf("found %d flags in the source, which is not all of them", len(places))
	}
	for name, at := range places {
		reason, allowed := severalPlaces[name]
		switch {
		case len(at) > 1 && !allowed:
			t.Errorf("--%s is registered in %s: register it by one function, in package frame if commands of several domains have it", name, strings.Join(at, " and "))
		case len(at) == 1 && allowed:
			t.Errorf("--%s is registered once: remove it from the exceptions (%s)", name, reason)
		}
	}
}

// registering are the functions that register a flag, with the index of its name.
var registering = map[string]int{
	"Var": 1, "VarP": 1, "BoolVar": 1, "BoolVarP": 1, "StringVar": 1, "StringVarP": 1, "StringArrayVar": 1, "StringSliceVar": 1, "StringSliceVarP": 1,
	"DurationVar": 1, "Float32Var": 1, "IntVar": 1, "CountVarP": 1, "AddTo": 1,
}

// constantOf keeps the string constants whose name ends in Flag.
func constantOf(n ast.Node, constants map[string]string) {
	spec, ok := n.(*ast.ValueSpec)
	if !ok || len(spec.Values) != 1 || !strings.HasSuffix(strings.ToLower(spec.Names[0].Name), "flag") {
		return
	}
	if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
		constants[spec.Names[0].Name], _ = strconv.Unquote(literal.Value)
	}
}

// flagOf is the flag that a call registers by a name that is a literal or a constant.
func flagOf(n ast.Node, constants map[string]string) (string, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return "", false
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	at, ok := registering[function.Sel.Name]
	if !ok || len(call.Args) < 3 {
		return "", false
	}
	switch name := call.Args[at].(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(name.Value)
		return text, err == nil && name.Kind == token.STRING
	case *ast.Ident:
		text, ok := constants[name.Name]
		return text, ok
	}
	return "", false
}
