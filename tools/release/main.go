// Command release makes, signs and checks releases: `make release VERSION=v0.1.0`, `make release-sign VERSION=v0.1.0 KEY=cosign.key`
// and `make release-check VERSION=v0.1.0`. `release image PROGRAM` makes the image of another static program for Linux, for tests on a node.
//
// A release is a folder. The program publishes nothing: it prints the commands that tag a release. Two releases of one commit
// by the same Go version have the same bytes.
//
// # Reading order
//
// internal/artifact names the files of a release. internal/source makes its commit and modules, internal/build compiles,
// internal/bundle archives, internal/oci writes layouts, internal/manifest writes the manifests of krew and Homebrew, and
// internal/sbom writes bills of materials. release.go makes a release with them, and internal/sign signs it. internal/pipeline runs
// the action for GitHub and the component for GitLab, internal/check checks a release, and main.go has the commands.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/check"
	"github.com/godwit-dev/godwit/tools/release/internal/oci"
	"github.com/godwit-dev/godwit/tools/release/internal/sign"
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
	key := flags.String("key", "", "the private key that signs, in PEM; its password is in COSIGN_PASSWORD")
	platforms := flags.String("platforms", "", "the platforms of a trial, such as linux/amd64,linux/arm64 (default: all)")
	noEntrypoint := flags.Bool("no-entrypoint", false, "with image: the arguments of a container begin with the path of the program")
	if len(args) == 0 {
		return fmt.Errorf("give a command: make, sign, check or image")
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
	if args[0] == "image" {
		return writeImage(*out, flags.Arg(0), *noEntrypoint)
	}
	o := options{repository: *repository, out: *out, version: flags.Arg(0), platforms: chosen, logf: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "release: "+format+"\n", args...)
	}}
	switch args[0] {
	case "make":
		return o.makeAndReport(ctx)
	case "sign":
		return o.sign(*key, os.Getenv("COSIGN_PASSWORD"))
	case "check":
		return o.check(ctx)
	}
	return fmt.Errorf("unknown command %s: give make, sign, check or image", args[0])
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

// writeImage writes the image of a program for the processor of this machine as a layout in the folder out, with the tag latest. The
// same program makes the same bytes.
func writeImage(out, program string, noEntrypoint bool) error {
	name := filepath.Base(program)
	image := oci.Image{Name: name, Ref: "latest", Time: time.Unix(0, 0), NoEntrypoint: noEntrypoint}
	digest, err := image.Write(out, map[artifact.Platform]string{{OS: "linux", Arch: runtime.GOARCH}: program})
	if err != nil {
		return fmt.Errorf("make the image of %s: %w", program, err)
	}
	fmt.Println(digest)
	return nil
}

// made returns the folder of a release that is made.
func (o options) made() (string, error) {
	if err := artifact.CheckVersion(o.version); err != nil {
		return "", err
	}
	dir := filepath.Join(o.out, o.version)
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("there is no %s: make release VERSION=%s", dir, o.version)
	}
	return dir, nil
}

// sign signs the release in the folder out with the key whose public key the repository has.
func (o options) sign(file, password string) error {
	dir, err := o.made()
	if err != nil {
		return err
	}
	if file == "" {
		return fmt.Errorf("no key is given: make release-sign VERSION=%s KEY=cosign.key", o.version)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	key, err := sign.ReadKey(text, []byte(password))
	if err != nil {
		return err
	}
	public, err := os.ReadFile(filepath.Join(o.repository, artifact.PublicKey))
	if err != nil || !bytes.Equal(bytes.TrimSpace(public), bytes.TrimSpace(key.Public)) {
		return fmt.Errorf("the repository does not have the public key of %s: commit it as %s: openssl pkey -in %s -pubout", file, artifact.PublicKey, file)
	}
	if err := (sign.Release{Dir: dir, Version: o.version}).Sign(key); err != nil {
		return err
	}
	o.logf("%s: signed: %s and %s", o.version, filepath.Join(dir, artifact.Signature), filepath.Join(dir, artifact.Provenance))
	return nil
}

// check checks the release in the folder out. One of the checks makes the release again, in another folder.
func (o options) check(ctx context.Context) error {
	dir, err := o.made()
	if err != nil {
		return err
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
