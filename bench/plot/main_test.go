package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestReplace replaces what is between markers, keeps what has no new numbers, and refuses a page without markers.
func TestReplace(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	const text = "before\n<!-- a begin -->\nold\n<!-- a end -->\nbetween\n<!-- b begin -->\nkept\n<!-- b end -->\nafter\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time changes nothing
		if err := replace(page, map[string]string{"a": "\nnew\n\n", "b": ""}); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if want := "before\n<!-- a begin -->\nnew\n<!-- a end -->\nbetween\n<!-- b begin -->\nkept\n<!-- b end -->\nafter\n"; string(got) != want {
			t.Errorf("the page is\n%s, want\n%s", got, want)
		}
	}
	if err := replace(page, map[string]string{"c": "new"}); err == nil {
		t.Error("a page without the markers: no error")
	}
}
