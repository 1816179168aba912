// Package check uses a release as its users do: it verifies the checksums and signatures, installs the program by the go command, by krew
// and from an archive, and by the action for pipelines, compiles an operator, reads the image, and has Helm pull and render the chart.
//
// # Reading order
//
// check.go lists the checks. golang.go, archive.go, image.go and chart.go have their code.
package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/bundle"
	"github.com/godwit-dev/godwit/tools/release/internal/sign"
)

// Check checks a release.
type Check struct {
	// Dir is the folder of the release.
	Dir        string
	Repository string
	Version    string
	Platforms  []artifact.Platform
	// Again makes the release again, in another folder.
	Again func(ctx context.Context, out string) error
	Logf  func(format string, args ...any)

	temp   string
	commit string
}

// Run runs all checks until one fails.
func (c *Check) Run(ctx context.Context) (err error) {
	if c.temp, err = os.MkdirTemp("", "release-check-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.temp)) }()
	for _, one := range []struct {
		name string
		run  func(context.Context) (string, error)
	}{
		{"checksums", c.checksums},
		{"signatures", c.signatures},
		{"two runs", c.twice},
		{"modules", c.modules},
		{"go install", c.install},
		{"go get", c.embed},
		{"archives", c.archives},
		{"bills of materials", c.boms},
		{"CRDs", c.crds},
		{"krew", c.krew},
		{"Homebrew", c.brew},
		{"pipelines", c.pipelines},
		{"image", c.image},
		{"chart", c.chart},
	} {
		what, err := one.run(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		c.Logf("check: %s: %s", one.name, what)
	}
	return nil
}

func (c *Check) read(name string) ([]byte, error) { return os.ReadFile(filepath.Join(c.Dir, name)) }

// checksums checks that the list has all files and no others, with their checksums.
func (c *Check) checksums(context.Context) (string, error) {
	want, err := c.read(artifact.Checksums)
	if err != nil {
		return "", err
	}
	got, err := bundle.Checksums(c.Dir, artifact.Unlisted...)
	if err != nil {
		return "", err
	}
	tags, err := c.read(artifact.Tags)
	if err != nil {
		return "", err
	}
	_, c.commit, _ = strings.Cut(strings.SplitN(string(tags), "\n", 2)[0], " ")
	return fmt.Sprintf("%d files", strings.Count(string(want), "\n")), same(want, got)
}

// signatures verifies the signatures of a release that is signed, by the public key in the repository.
func (c *Check) signatures(context.Context) (string, error) {
	_, none := os.Stat(filepath.Join(c.Dir, artifact.Signature))
	_, other := os.Stat(filepath.Join(c.Dir, artifact.Provenance))
	if missing := errors.Is(none, fs.ErrNotExist); missing != errors.Is(other, fs.ErrNotExist) {
		return "", fmt.Errorf("only one of %s and %s is there: sign the release again", artifact.Signature, artifact.Provenance)
	} else if missing {
		return "the release is not signed: make release-sign VERSION=" + c.Version + " KEY=FILE", nil
	}
	public, err := os.ReadFile(filepath.Join(c.Repository, artifact.PublicKey))
	if err != nil {
		return "", err
	}
	commit, err := sign.Release{Dir: c.Dir, Version: c.Version}.Verify(public)
	if err == nil && commit != c.commit {
		err = fmt.Errorf("the provenance names commit %s, and %s has %s", commit, artifact.Tags, c.commit)
	}
	return "the checksums and the provenance have signatures of " + artifact.PublicKey, err
}

// same compares two lists of checksums, and names the first file that differs.
func same(want, got []byte) error {
	other := map[string]string{}
	for line := range strings.Lines(string(got)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		other[name] = sum
	}
	for line := range strings.Lines(string(want)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if other[name] != sum {
			return fmt.Errorf("%s differs: %q, want %q", name, other[name], sum)
		}
		delete(other, name)
	}
	for name := range other {
		return fmt.Errorf("%s is not in the list", name)
	}
	return nil
}

// twice makes the release again, and checks that it has the same checksums.
func (c *Check) twice(ctx context.Context) (string, error) {
	again := filepath.Join(c.temp, "again")
	if err := c.Again(ctx, again); err != nil {
		return "", err
	}
	tags, err := os.ReadFile(filepath.Join(again, c.Version, artifact.Tags))
	if err != nil {
		return "", err
	}
	if !strings.Contains(string(tags), c.commit) {
		return "", fmt.Errorf("%s is not made from the current commit: check out %s, or make the release again", c.Dir, c.commit)
	}
	want, err := c.read(artifact.Checksums)
	if err != nil {
		return "", err
	}
	got, err := os.ReadFile(filepath.Join(again, c.Version, artifact.Checksums))
	if err != nil {
		return "", err
	}
	return "the second one has the same bytes", same(want, got)
}
