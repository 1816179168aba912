package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-dev/godwit/cmd/internal/root"
)

// commandTree is the tree of all commands. Defaults that begin with the home directory must not be this machine's.
func commandTree() (*cobra.Command, error) {
	if err := os.Setenv("KUBECACHEDIR", "$HOME/.kube/cache"); err != nil {
		return nil, err
	}
	return root.Command(), nil
}

// commandsPage lists all commands, and has the flags that each of them has.
func commandsPage() (string, error) {
	tree, err := commandTree()
	if err != nil {
		return "", err
	}
	flags, err := flagList(tree.PersistentFlags())
	if err != nil {
		return "", err
	}
	commands := newTable("command", "what it does")
	each(tree, func(c *cobra.Command) {
		commands.row("["+c.CommandPath()+"]("+pageOfCommand(c)+")", sentence(c.Short))
	})
	return fmt.Sprintf("%s# Commands\n\n%s As a plugin of kubectl it is called `kubectl godwit`.\n\n%s\n"+
		"## Flags of every command\n\nThey choose cluster and user, and are kubectl's.\n\n%s", generated, sentence(tree.Short), commands, flags), nil
}

// commandPages has a page for each command that can run.
func commandPages() (map[string]func() (string, error), error) {
	tree, err := commandTree()
	if err != nil {
		return nil, err
	}
	all := map[string]func() (string, error){}
	each(tree, func(c *cobra.Command) {
		all[pageOfCommand(c)] = func() (string, error) { return describe(c) }
	})
	return all, nil
}

// pageOfCommand is the path of a command's page in docs/reference.
func pageOfCommand(c *cobra.Command) string {
	_, names, _ := strings.Cut(c.CommandPath(), " ")
	return "commands/" + strings.ReplaceAll(names, " ", "-") + ".md"
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

func describe(c *cobra.Command) (string, error) {
	long := c.Long
	if long == "" {
		long = sentence(c.Short)
	}
	var page strings.Builder
	fmt.Fprintf(&page, "%s# %s\n\n%s\n\n```\n%s\n```\n\n", generated, c.CommandPath(), indentedCode(long), c.UseLine())
	for _, alias := range c.Aliases {
		fmt.Fprintf(&page, "`%s %s` is the same command.\n\n", c.Parent().CommandPath(), alias)
	}
	page.WriteString("## Flags\n\n")
	flags, err := flagList(c.LocalNonPersistentFlags())
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.CommandPath(), err)
	}
	if flags != "" {
		page.WriteString(flags + "\n")
	}
	page.WriteString("Every command has [the flags that choose cluster and user](../cli.md#flags-of-every-command), too.\n")
	if c.Example != "" {
		fmt.Fprintf(&page, "\n## Examples\n\n```sh\n%s\n```\n", unindented(c.Example))
	}
	return page.String(), nil
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

// flagList is a list with an item for each flag, since a page on a telephone shows a list whole, and a table or a block of code in part.
func flagList(flags *pflag.FlagSet) (string, error) {
	var list strings.Builder
	for line := range strings.Lines(flags.FlagUsages()) {
		flag, usage, found := strings.Cut(strings.TrimSpace(line), "   ") // pflag's space before the column of usages
		if !found || !strings.HasPrefix(flag, "-") {
			return "", fmt.Errorf("this line of the help has no flag and usage: %q", line)
		}
		fmt.Fprintf(&list, "- `%s`: %s\n", flag, escaped(strings.TrimSpace(usage)))
	}
	return list.String(), nil
}

// escaped writes text so that Markdown shows it as it is.
func escaped(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`).Replace(text)
}

func unindented(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "  ")
	}
	return strings.Join(lines, "\n")
}
