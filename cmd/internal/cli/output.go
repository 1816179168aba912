package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-dev/godwit/cmd/internal/report"
)

// Choice is a flag with a fixed set of values. An unknown one is a usage error
// that names them all.
type Choice struct {
	Value   string
	Allowed []string
	Kind    string
}

var _ pflag.Value = &Choice{}

// String implements pflag.Value.
func (c *Choice) String() string { return c.Value }

// Type implements pflag.Value.
func (c *Choice) Type() string { return c.Kind }

// Set implements pflag.Value.
func (c *Choice) Set(value string) error {
	if slices.Contains(c.Allowed, value) {
		c.Value = value
		return nil
	}
	return fmt.Errorf("choose one of %s", strings.Join(c.Allowed, ", "))
}

// AddTo registers the flag and its completion.
func (c *Choice) AddTo(command *cobra.Command, name, shorthand, usage string) {
	command.Flags().VarP(c, name, shorthand, usage)
	_ = command.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.Allowed, cobra.ShellCompDirectiveNoFileComp))
}

// Output is -o of the commands that print lists.
type Output struct{ Choice }

// AddTo registers the flag.
func (f *Output) AddTo(command *cobra.Command) {
	f.Choice = Choice{Allowed: []string{"json", "yaml", "wide", "name"}, Kind: "format"}
	f.Choice.AddTo(command, "output", "o", "output format: json, yaml, wide or name (default: a table)")
}

// machine: the reader is a program, and gets a list in every case.
func (f *Output) machine() bool { return f.Value == "json" || f.Value == "yaml" }

// Write prints a list in the format asked for; people writes the table.
func Write[T report.Item](w io.Writer, f Output, list report.List[T], people func(io.Writer) error) error {
	return WriteDocument(w, f, list, report.NamesOf(list.Items), people)
}

// WriteDocument prints whatever programs are to get; names are of its items.
func WriteDocument(w io.Writer, f Output, document any, names []string, people func(io.Writer) error) error {
	var err error
	switch f.Value {
	case "json":
		err = report.Encode(w, document)
	case "yaml":
		err = report.EncodeYAML(w, document)
	case "name":
		err = report.Names(w, names)
	default:
		err = people(w)
	}
	if err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// ListOnError prints an empty list for programs when a command failed before
// it printed its own.
func ListOnError(w io.Writer, f Output, list any, cause error) error {
	if f.machine() && cause != nil && !said(cause) {
		if err := WriteDocument(w, f, list, nil, nil); err != nil {
			return err
		}
	}
	return cause
}

// ListOnFlagError does the same for a command line that can't be understood,
// and whose flags are therefore not set.
func ListOnFlagError(a *App, c *cobra.Command, list any) {
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return ListOnError(a.Streams.Out, outputAmong(a.Args), list, Usage(err))
	})
}

// outputAmong finds the format in a command line, as far as it is one.
func outputAmong(args []string) Output {
	var f Output
	for i, arg := range args {
		value := ""
		switch {
		case strings.HasPrefix(arg, "--output="), strings.HasPrefix(arg, "-o="):
			_, value, _ = strings.Cut(arg, "=")
		case strings.HasPrefix(arg, "-o") && arg != "-o":
			value = arg[len("-o"):]
		case (arg == "-o" || arg == "--output") && i+1 < len(args):
			value = args[i+1]
		}
		if value == "json" || value == "yaml" {
			f.Value = value
		}
	}
	return f
}
