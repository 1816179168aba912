// Command release makes and checks releases: `make release VERSION=v0.1.0` and `make release-check VERSION=v0.1.0`.
//
// A release is a folder. The program publishes nothing: it prints the commands that tag a release. Two releases of one commit
// by the same Go version have the same bytes.
//
// # Reading order
//
// internal/artifact names the files of a release. internal/source makes its commit and modules, internal/build compiles,
// internal/bundle archives, internal/oci writes layouts, internal/manifest writes the manifests of krew and Homebrew, and
// internal/sbom writes bills of materials. release.go makes a release with them, internal/check checks a release, and main.go
// has the commands.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/check"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintf(os.Stderr, "release: %s\n", strings.Join(strings.Fields(err.Error()), " "))
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // main prints the error in one line
	repository := flags.String("repository", ".", "the repository")
	out := flags.String("out", "dist", "where releases are")
	platforms := flags.String("platforms", "", "the platforms of a trial, such as linux/amd64,linux/arm64 (default: all)")
	if len(args) == 0 {
		return fmt.Errorf("give a command: make or check")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	chosen, err := artifact.ParsePlatforms(*platforms)
	if err != nil {
		return err
	}
	if *platforms != "" {
		fmt.Fprintf(os.Stderr, "release: a trial for %s: do not publish it\n", *platforms)
	}
	o := options{repository: *repository, out: *out, version: flags.Arg(0), platforms: chosen, logf: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "release: "+format+"\n", args...)
	}}
	switch args[0] {
	case "make":
		return o.makeAndReport(ctx)
	case "check":
		return o.check(ctx)
	}
	return fmt.Errorf("unknown command %s: give make or check", args[0])
}

func (o options) makeAndReport(ctx context.Context) error {
	commit, err := o.make(ctx)
	if err != nil {
		return err
	}
	dir := filepath.Join(o.out, o.version)
	fmt.Printf("%s has the release of commit %s. Nothing is published.\n", dir, commit)
	fmt.Printf("Check it: make release-check VERSION=%s\n", o.version)
	fmt.Printf("Tag it: while read -r tag commit; do git tag \"$tag\" \"$commit\"; done < %s\n", filepath.Join(dir, artifact.Tags))
	return nil
}

// check checks the release in the folder out. One of the checks makes the release again, in another folder.
func (o options) check(ctx context.Context) error {
	if err := artifact.CheckVersion(o.version); err != nil {
		return err
	}
	dir := filepath.Join(o.out, o.version)
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("there is no %s: make release VERSION=%s", dir, o.version)
	}
	c := check.Check{
		Dir: dir, Repository: o.repository, Version: o.version, Platforms: o.platforms, Logf: o.logf,
		Again: func(ctx context.Context, out string) error {
			again := o
			again.out, again.logf = out, func(string, ...any) {}
			_, err := again.make(ctx)
			return err
		},
	}
	return c.Run(ctx)
}
