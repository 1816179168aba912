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

// choice is a flag with a fixed set of values. An unknown one is a usage error
// that names them all.
type choice struct {
	value   string
	allowed []string
	kind    string
}

var _ pflag.Value = &choice{}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return c.kind }

func (c *choice) Set(value string) error {
	if slices.Contains(c.allowed, value) {
		c.value = value
		return nil
	}
	return fmt.Errorf("choose one of %s", strings.Join(c.allowed, ", "))
}

// addTo registers the flag and its completion.
func (c *choice) addTo(command *cobra.Command, name, shorthand, usage string) {
	command.Flags().VarP(c, name, shorthand, usage)
	_ = command.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.allowed, cobra.ShellCompDirectiveNoFileComp))
}

// format is -o of the commands that print lists.
type format struct{ choice }

func (f *format) addTo(command *cobra.Command) {
	f.choice = choice{allowed: []string{"json", "yaml", "wide", "name"}, kind: "format"}
	f.choice.addTo(command, "output", "o", "output format: json, yaml, wide or name (default: a table)")
}

// machine: the reader is a program, and gets a list in every case.
func (f *format) machine() bool { return f.value == "json" || f.value == "yaml" }

// write prints a list in the format asked for; people writes the table.
func write[T report.Item](w io.Writer, f format, list report.List[T], people func(io.Writer) error) error {
	return writeDocument(w, f, list, report.NamesOf(list.Items), people)
}

// writeDocument prints whatever programs are to get; names are of its items.
func writeDocument(w io.Writer, f format, document any, names []string, people func(io.Writer) error) error {
	var err error
	switch f.value {
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

// listOnError prints an empty list for programs when a command failed before
// it printed its own.
func listOnError(w io.Writer, f format, list any, cause error) error {
	if f.machine() && cause != nil && !said(cause) {
		if err := writeDocument(w, f, list, nil, nil); err != nil {
			return err
		}
	}
	return cause
}

// listOnFlagError does the same for a command line that can't be understood,
// and whose flags are therefore not set.
func listOnFlagError(a *app, c *cobra.Command, list any) {
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return listOnError(a.streams.Out, outputAmong(a.args), list, &usageError{err})
	})
}

// outputAmong finds the format in a command line, as far as it is one.
func outputAmong(args []string) format {
	var f format
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
			f.value = value
		}
	}
	return f
}
