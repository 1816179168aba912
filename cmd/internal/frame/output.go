package frame

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// Output is the flag -o. Commands write tables, package render writes JSON and YAML, and
// kubectl's printers write templates.
type Output struct {
	Choice
	// Empty is the document for programs if a command fails before it prints its own.
	Empty any

	template printers.ResourcePrinter // nil for other formats
	command  *cobra.Command           // whose context has the time of a document; nil for one without
}

// invocationKey is the key of the invocation in a context.
type invocationKey struct{}

// invocation is what a command knows about itself.
type invocation struct {
	began  time.Time
	origin func(context.Context) *render.Origin // of the first connection; nil for a command that uses no cluster
}

// WithBegan is a context that has the time at which the command began.
func WithBegan(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, invocationKey{}, &invocation{began: t.UTC().Truncate(time.Second)})
}

// setOrigin records how to learn which cluster the documents of the command are about.
func setOrigin(ctx context.Context, origin func(context.Context) *render.Origin) {
	if i, known := ctx.Value(invocationKey{}).(*invocation); known && i.origin == nil {
		i.origin = origin
	}
}

// originTimeout bounds what a command that has done its work asks about the cluster.
const originTimeout = 5 * time.Second

// evidence is a document with its provenance: the time at which the command began, and the cluster.
func (f *Output) evidence(document any) any {
	d, is := document.(render.Evidence)
	if !is || f.command == nil || f.command.Context() == nil {
		return document
	}
	i, known := f.command.Context().Value(invocationKey{}).(*invocation)
	if !known {
		return document
	}
	made := render.Provenance{Time: i.began}
	if i.origin != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(f.command.Context()), originTimeout)
		defer cancel()
		made.Origin = i.origin(ctx)
	}
	return d.WithProvenance(made)
}

// templateFormats are kubectl's formats with a template.
var templateFormats = []string{"jsonpath=TEMPLATE", "jsonpath-file=FILE", "go-template=TEMPLATE", "go-template-file=FILE"}

const outputFlag = "output"

// AddTo registers the flag for a command that prints a table. empty is the document of a command that fails.
func (f *Output) AddTo(command *cobra.Command, empty any) {
	f.add(command, empty, "a table", "json", "yaml", "wide", "name")
}

// Markdown is a format of commands that write pages.
const Markdown = "markdown"

// AddPagesTo registers the flag for a command that prints a table, or pages in Markdown.
func (f *Output) AddPagesTo(command *cobra.Command, empty any) {
	f.add(command, empty, "a table", "json", "yaml", "wide", "name", Markdown)
}

// HTML is a format of commands that write a page for a browser.
const HTML = "html"

// AddReportTo registers the flag for a command that prints a table, or a page in Markdown or HTML.
func (f *Output) AddReportTo(command *cobra.Command, empty any) {
	f.add(command, empty, "a table", "json", "yaml", "wide", "name", Markdown, HTML)
}

// WriteFile replaces a file as a whole: a reader never sees a part of it.
func WriteFile(path string, text []byte) error {
	const readable = 0o644
	file, err := os.CreateTemp(filepath.Dir(path), ".godwit-*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Chmod(readable), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// Formats that pipelines read.
const (
	SARIF = "sarif"
	JUnit = "junit"
)

// AddFindingsTo registers the flag for a command that reports findings in files.
func (f *Output) AddFindingsTo(command *cobra.Command, empty any) {
	f.add(command, empty, "a table", "json", "yaml", "wide", "name", SARIF, JUnit, Markdown)
}

// AddDataTo registers the flag for a command that prints text and no table. Its output depends on files only, and has
// no time.
func (f *Output) AddDataTo(command *cobra.Command, empty any) {
	f.add(command, empty, "text", "json", "yaml")
	f.command = nil
}

func (f *Output) add(command *cobra.Command, empty any, byDefault string, formats ...string) {
	f.Choice, f.command, f.Empty = Choice{Allowed: formats, Kind: "format"}, command, empty
	command.Flags().VarP(f, outputFlag, "o", "output format: "+strings.Join(f.formats(), ", ")+" (default: "+byDefault+")")
	_ = command.RegisterFlagCompletionFunc(outputFlag, f.complete)
}

// formats returns all values of the flag.
func (f *Output) formats() []string { return slices.Concat(f.Allowed, templateFormats) }

// complete lists the formats, and those with a template up to the equals sign.
func (f *Output) complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all := slices.Clone(f.Allowed)
	for _, t := range templateFormats {
		name, _, _ := strings.Cut(t, "=")
		all = append(all, name+"=")
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// Set implements pflag.Value. A wrong template is an error of the command line, before the
// command does anything.
func (f *Output) Set(value string) error {
	if slices.Contains(f.Allowed, value) {
		f.Value, f.template = value, nil
		return nil
	}
	template, err := genericclioptions.NewKubeTemplatePrintFlags().ToPrinter(value)
	switch {
	case genericclioptions.IsNoCompatiblePrinterError(err):
		return fmt.Errorf("choose one of %s", strings.Join(f.formats(), ", "))
	case err != nil:
		return errors.New(OneLine(err))
	}
	f.Value, f.template = value, template
	return nil
}

// machine reports whether the format is for programs. Programs always get a list.
func (f *Output) machine() bool { return f.Value == "json" || f.Value == "yaml" }

// Style returns the style of tables for a stream.
func (a *App) Style(stream any, f Output) render.Style {
	return render.Style{Color: hasColor(stream), Wide: f.Value == "wide", Width: width(stream)}
}

// Write prints a list in the format of the flag. people writes the table for users.
func Write[T render.Item](w io.Writer, f Output, list render.List[T], people func(io.Writer) error) error {
	var names []string
	if f.Value == "name" {
		names = render.NamesOf(list.Items)
	}
	return WriteDocument(w, f, list, names, people)
}

// Print prints a list to stdout in the format of the flag. table writes it for the user.
func Print[T render.Item](a *App, f Output, list render.List[T], table func(io.Writer, render.Style, []T) error) error {
	return Write(a.Streams.Out, f, list, func(w io.Writer) error { return table(w, a.Style(a.Streams.Out, f), list.Items) })
}

// WriteDocument prints a document in the format of the flag. names are the names of its
// items, and people writes the text for the user.
func WriteDocument(w io.Writer, f Output, document any, names []string, people func(io.Writer) error) error {
	var err error
	switch {
	case f.template != nil:
		err = writeTemplate(w, f.template, f.evidence(document))
	case f.Value == "json":
		err = render.Encode(w, f.evidence(document))
	case f.Value == "yaml":
		err = render.EncodeYAML(w, f.evidence(document))
	case f.Value == "name":
		err = render.Names(w, names)
	default:
		err = people(w)
	}
	if err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// writeTemplate applies a template to the JSON of a document.
func writeTemplate(w io.Writer, template printers.ResourcePrinter, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	object := map[string]any{}
	if err := json.Unmarshal(text, &object); err != nil { // apimachinery's decoder keeps whole numbers as integers
		return err
	}
	return template.PrintObj(&unstructured.Unstructured{Object: object}, w)
}
