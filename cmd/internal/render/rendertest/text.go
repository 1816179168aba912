// Package rendertest compares the output of a report with the expected text.
package rendertest

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

// Compare fails the test if write does not write the text, which begins on a new line.
func Compare(t *testing.T, reason, want string, write func(io.Writer) error) {
	t.Helper()
	out := bytes.NewBufferString("\n")
	if err := write(out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", reason, diff)
	}
}

// Golden fails the test if the text differs from a file in testdata. With -update, it writes the file.
func Golden(t *testing.T, file string, write func(io.Writer) error) {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: go test -update writes it", err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// Body writes a page without its style and its script.
func Body(write func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		var page bytes.Buffer
		if err := write(&page); err != nil {
			return err
		}
		_, body, _ := bytes.Cut(page.Bytes(), []byte("<body>\n"))
		body, _, _ = bytes.Cut(body, []byte("<script>"))
		_, err := w.Write(body)
		return err
	}
}
