package page_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/test/node/operators/page"
)

const (
	empty = "# Title\n\n<!-- begin of the table that make e2e-operators writes -->\n<!-- end of the table -->\n\nAfter.\n"
	head  = "# Title\n\n<!-- begin of the table that make e2e-operators writes -->\n" +
		"| operator | releases | objects | time of the migration | lost | also |\n|---|---|---|---|---|---|\n"
	tail = "<!-- end of the table -->\n\nAfter.\n"
)

func TestWith(t *testing.T) {
	one := page.Row{Operator: "one", Releases: []string{"v1", "v2"}, Objects: 10, Took: 90*time.Second + time.Millisecond, Also: "a | b"}
	other := page.Row{Operator: "another", Releases: []string{"v1"}, Objects: 5, Lost: 2, Took: time.Minute}
	text, want := empty, head+"| another | v1 | 5 | 1m0s | **2 objects** |  |\n| one | v1 → v2 | 10 | 1m30s | nothing | a / b |\n"+tail
	for _, r := range []page.Row{one, other, one} {
		var err error
		if text, err = page.With(text, r); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("the page (-want +got):\n%s", diff)
	}
	one.Objects, one.GivenUp = 20, map[string]int{"spec.b": 3, "spec.a": 4}
	text, err := page.With(text, one)
	if want := head + "| another | v1 | 5 | 1m0s | **2 objects** |  |\n" +
		"| one | v1 → v2 | 20 | 1m30s | 7 values that were given up by consent: spec.a, spec.b | a / b |\n" + tail; err != nil || text != want {
		t.Errorf("a second run does not replace its row: %v (-want +got):\n%s", err, cmp.Diff(want, text))
	}
	if _, err := page.With("# Title\n", one); err == nil {
		t.Error("a page without a table is accepted")
	}
}

// TestPageOfThisRepository: the page has the table that the next run writes, with the columns of today.
func TestPageOfThisRepository(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/reference/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	row := page.Row{Operator: "~", Took: time.Second}
	with, err := page.With(string(text), row)
	if err != nil {
		t.Fatal(err)
	}
	if len(with) <= len(text) {
		t.Error("the page has other columns: run make e2e-operators")
	}
}
