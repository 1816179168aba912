package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-dev/godwit/cmd/internal/root"
)

func commandPage() (string, error) {
	// Defaults that begin with the home directory must not be this machine's.
	if err := os.Setenv("KUBECACHEDIR", "$HOME/.kube/cache"); err != nil {
		return "", err
	}
	tree := root.Command()
	var page strings.Builder
	fmt.Fprintf(&page, "%s# Commands\n\n%s As a plugin of kubectl it is called `kubectl godwit`.\n\n", generated, sentence(tree.Short))
	commands := newTable("command", "what it does")
	each(tree, func(c *cobra.Command) {
		commands.row("["+c.CommandPath()+"](#"+anchor(c)+")", sentence(c.Short))
	})
	page.WriteString(commands.String())
	each(tree, func(c *cobra.Command) { describe(&page, c) })
	fmt.Fprintf(&page, "\n## Flags of every command\n\nThey choose cluster and user, and are kubectl's.\n\n```\n%s```\n", usages(tree.PersistentFlags()))
	return page.String(), nil
}

// each visits the commands that can run: also a command with subcommands, if it has its own flags.
func each(c *cobra.Command, visit func(*cobra.Command)) {
	if c.Hidden {
		return
	}
	if !c.HasSubCommands() || c.Flags().HasFlags() {
		visit(c)
	}
	for _, sub := range c.Commands() {
		each(sub, visit)
	}
}

func anchor(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func describe(page *strings.Builder, c *cobra.Command) {
	long := c.Long
	if long == "" {
		long = sentence(c.Short)
	}
	fmt.Fprintf(page, "\n## %s\n\n%s\n\n```\n%s\n```\n", c.CommandPath(), indentedCode(long), c.UseLine())
	if flags := usages(c.LocalNonPersistentFlags()); flags != "" {
		fmt.Fprintf(page, "\n```\n%s```\n", flags)
	}
	if c.Example != "" {
		fmt.Fprintf(page, "\nExamples:\n\n```sh\n%s\n```\n", unindented(c.Example))
	}
}

// indentedCode converts indented text to Markdown code, which needs four spaces and an empty line.
func indentedCode(text string) string {
	var b strings.Builder
	before := ""
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "  ") {
			if before != "" && !strings.HasPrefix(before, "  ") {
				b.WriteString("\n")
			}
			b.WriteString("  ")
		}
		b.WriteString(line + "\n")
		before = line
	}
	return strings.TrimRight(b.String(), "\n")
}

func usages(flags *pflag.FlagSet) string {
	var b strings.Builder
	for line := range strings.Lines(flags.FlagUsages()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

func unindented(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "  ")
	}
	return strings.Join(lines, "\n")
}
