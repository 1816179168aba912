package main

import (
	"crypto/elliptic"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
)

// TestMakeRefuses: bad input is one line that says what to do, and leaves nothing.
func TestMakeRefuses(t *testing.T) {
	origin := t.TempDir()
	if text, err := exec.CommandContext(t.Context(), "git", "init", "--quiet", origin).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := os.WriteFile(filepath.Join(origin, "a.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		version, exists string
		want            string
	}{
		"no version":         {want: "no version is given: make release VERSION=v0.1.0"},
		"not semantic":       {version: "latest", want: "VERSION=latest is not a semantic version: write it like v0.1.0"},
		"without a v":        {version: "0.1.0", want: "VERSION=0.1.0 is not a semantic version"},
		"a path":             {version: "../v0.1.0", want: "is not a semantic version"},
		"incomplete":         {version: "v0.1", want: "write v0.1.0"},
		"an existing one":    {version: "v0.1.0", exists: "v0.1.0", want: "v0.1.0 exists: remove it to make this release again, or choose another version"},
		"a dirty tree":       {version: "v0.1.0", want: "the tree is dirty (?? a.go)"},
		"dirty, with others": {version: "v0.1.0", exists: "v0.0.9", want: "the tree is dirty (?? a.go)"},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "dist")
			var want []string
			if c.exists != "" {
				want = []string{c.exists}
				if err := os.MkdirAll(filepath.Join(out, c.exists), 0o750); err != nil {
					t.Fatal(err)
				}
			}
			o := options{repository: origin, out: out, version: c.version, platforms: artifact.Platforms, logf: func(string, ...any) {}}
			_, err := o.make(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q", err, c.want)
			}
			entries, err := os.ReadDir(out)
			if c.exists == "" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s exists, with %v", out, entries)
			}
			var left []string
			for _, e := range entries {
				left = append(left, e.Name())
			}
			if diff := cmp.Diff(want, left); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSignRefuses: a release is signed with the key whose public key the repository has, and with no other.
func TestSignRefuses(t *testing.T) {
	dir := t.TempDir()
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.SkipPassword)
	if err != nil {
		t.Fatal(err)
	}
	_, another, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.SkipPassword)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "cosign.key")
	made := filepath.Join(dir, "dist", "v0.1.0")
	if err := errors.Join(os.WriteFile(key, private, 0o600), os.MkdirAll(made, 0o750), os.WriteFile(filepath.Join(made, artifact.Checksums), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		version, key string
		public       []byte
		want         string
	}{
		"no release":         {"v0.2.0", key, public, "make release VERSION=v0.2.0"},
		"no key":             {"v0.1.0", "", public, "no key is given: make release-sign VERSION=v0.1.0 KEY=cosign.key"},
		"no public key":      {"v0.1.0", key, nil, "commit it as cosign.pub: openssl pkey"},
		"another public key": {"v0.1.0", key, another, "the repository does not have the public key of "},
		"the right key":      {"v0.1.0", key, public, "tags.txt"}, // the release has no tags
	} {
		t.Run(name, func(t *testing.T) {
			repository := t.TempDir()
			if c.public != nil {
				if err := os.WriteFile(filepath.Join(repository, artifact.PublicKey), c.public, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			o := options{repository: repository, out: filepath.Join(dir, "dist"), version: c.version, logf: func(string, ...any) {}}
			if err := o.sign(c.key, ""); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
