package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/godwit-dev/godwit/cmd/internal/root"
)

// writeManual writes a manual page for each command. Its date is that of SOURCE_DATE_EPOCH.
func writeManual(dir, version string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH is the time of a release in seconds: %w", err)
	}
	at := time.Unix(seconds, 0).UTC()
	if err := os.Setenv("KUBECACHEDIR", "$HOME/.kube/cache"); err != nil {
		return err
	}
	tree := root.Command()
	tree.DisableAutoGenTag = true
	if err := writeManualPage(dir, tree, doc.GenManHeader{Section: "1", Date: &at, Source: "Godwit " + version, Manual: "Godwit"}); err != nil {
		return err
	}
	// The page of the program has the flags of every command. The other pages refer to it.
	tree.PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	var all []*cobra.Command
	each(tree, func(c *cobra.Command) { all = append(all, c) })
	for _, c := range tree.Commands() {
		if c.HasSubCommands() && !c.Flags().HasFlags() {
			all = append(all, c)
		}
	}
	for _, c := range all {
		if c == tree || c.Name() == "help" {
			continue
		}
		if err := writeManualPage(dir, c, doc.GenManHeader{Section: "1", Date: &at, Source: "Godwit " + version, Manual: "Godwit"}); err != nil {
			return err
		}
	}
	return nil
}

func writeManualPage(dir string, c *cobra.Command, header doc.GenManHeader) error {
	name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
	file, err := os.Create(filepath.Clean(filepath.Join(dir, name)))
	if err != nil {
		return err
	}
	long := c.Long
	c.Long = indentedCode(long)
	err = doc.GenMan(c, &header, file)
	c.Long = long
	if err != nil {
		return fmt.Errorf("write the page of %s: %w", c.CommandPath(), err)
	}
	return file.Close()
}
