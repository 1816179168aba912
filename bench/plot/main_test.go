package main

import (
	"os"
	"path/filepath"
	"strings"
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

// TestRun draws what was measured, and leaves the rest of the page as it is.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	const text = "<!-- peers begin -->\nold\n<!-- peers end -->\n<!-- scale begin -->\nold\n<!-- scale end -->\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, filepath.Join(dir, "images"), page); err == nil || !strings.Contains(err.Error(), "make bench-scale") {
		t.Errorf("nothing was measured: %v, want the commands to run first", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "scale-7.json"), []byte(`{"objects": 7, "date": "2026-01-02"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, filepath.Join(dir, "images"), page); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(got); !strings.Contains(s, "peers begin -->\nold\n") || !strings.Contains(s, "| 7 |") {
		t.Errorf("the page is\n%s, want the old peers and 7 objects", s)
	}
	if _, err := os.Stat(filepath.Join(dir, "images", "scale-memory.svg")); err != nil {
		t.Error(err)
	}
}
