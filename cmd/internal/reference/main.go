// Command reference writes docs/reference from its sources: the generated CRDs, comments, the commands, and the metric
// collectors. It adds only an introduction to each page. It fails if a new item has no description.
//
// # Reading order
//
// table.go writes Markdown, and source.go reads comments. Then there is one file
// for each page: kind.go, command.go, configuration.go, metric.go, event.go, alert.go and surface.go. manual.go writes the manual
// pages of a release. main.go lists the pages. A file uses only files before it.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
)

//go:generate go run .

// pages are the files of docs/reference, without those of single commands.
var pages = map[string]func() (string, error){
	"crdmigration.md":                     kindPage(godwitKinds+"crdmigrations", "metadata:\n  name: widgets.example.com\n"),
	"controllerrevisionupgrade.md":        kindPage(godwitKinds+"controllerrevisionupgrades", "metadata:\n  name: web-u1.medium\n  namespace: shop\nspec:\n  targetName: web-u1.medium-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1\n"),
	"controllerrevisionupgradetrigger.md": kindPage(godwitKinds+"controllerrevisionupgradetriggers", "metadata:\n  name: all\nspec: {}\n"),
	"managedclustermigration.md":          kindPage(hubKinds+"managedclustermigrations", "metadata:\n  name: move\n  namespace: godwit\nspec:\n  from: hub1\n  to: hub2\n  includedManagedClusters: [site1, site2]\n"),
	"cli.md":                              commandsPage,
	"configuration.md":                    configurationPage,
	"metrics.md":                          metricPage,
	"alerts.md":                           alertPage,
	"events.md":                           eventPage,
	"surface.txt":                         surfacePage,
}

func main() {
	manual := flag.String("manual", "", "write manual pages to this folder, and no reference")
	version := flag.String("version", "", "version of the manual pages")
	flag.Parse()
	if *manual != "" {
		if err := writeManual(*manual, *version); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n", err)
			os.Exit(1)
		}
		return
	}
	all, err := allPages()
	if err == nil {
		err = write(all)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "write docs/reference: %v\n", err)
		os.Exit(1)
	}
}

func allPages() (map[string]func() (string, error), error) {
	all, err := commandPages()
	maps.Copy(all, pages)
	return all, err
}

// write writes all pages, and deletes those of commands that are gone.
func write(all map[string]func() (string, error)) error {
	old, err := filepath.Glob(pathOf(filepath.Join("commands", "*.md")))
	if err != nil {
		return err
	}
	for _, file := range old {
		if _, exists := all["commands/"+filepath.Base(file)]; !exists {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	for name, page := range all {
		text, err := page()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(pathOf(name), []byte(text), 0o644); err != nil { //nolint:gosec // documents are for all users
			return err
		}
	}
	return nil
}

func pathOf(page string) string { return filepath.Join(repository, "docs", "reference", page) }
