package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
)

// A release with one of both signatures looks signed to one program, and unsigned to another.
func TestHalfSigned(t *testing.T) {
	for _, name := range []string{artifact.Signature, artifact.Provenance} {
		c := Check{Dir: t.TempDir(), Repository: t.TempDir(), Version: "v0.1.0"}
		if said, err := c.signatures(t.Context()); err != nil || !strings.Contains(said, "is not signed") {
			t.Errorf("without signatures: %q, %v", said, err)
		}
		if err := os.WriteFile(filepath.Join(c.Dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if said, err := c.signatures(t.Context()); err == nil || !strings.Contains(err.Error(), "only one of ") {
			t.Errorf("with %s alone: %q, %v", name, said, err)
		}
	}
}

func TestSame(t *testing.T) {
	const want = "1  a\n2  b\n"
	for got, problem := range map[string]string{
		want:               "",
		"2  b\n1  a\n":     "",
		"1  a\n3  b\n":     "b differs",
		"1  a\n":           "b differs",
		"1  a\n2  b\n3 \n": "is not in the list",
		"":                 "differs",
	} {
		err := same([]byte(want), []byte(got))
		if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v, want %q", got, err, problem)
		}
	}
}
