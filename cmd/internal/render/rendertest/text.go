// Package reporttest compares what a report writes with the text that a user is to see.
package rendertest

import (
	"bytes"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Compare fails the test where write does not write the text, which begins on a line of its own.
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
