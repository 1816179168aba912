package operators_test

import (
	"path/filepath"
	"testing"

	"github.com/godwit-dev/godwit/test/node/operators/page"
	"github.com/godwit-dev/godwit/test/program"
)

// record writes what a test has measured into the documentation, unless the test has failed.
func record(t *testing.T, r page.Row) {
	t.Helper()
	t.Logf("%+v", r)
	if t.Failed() {
		return
	}
	root, err := program.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := page.Write(filepath.Join(root, "docs", "reference", "operators.md"), r); err != nil {
		t.Fatal(err)
	}
}
