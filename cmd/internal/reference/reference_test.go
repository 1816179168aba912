package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReferenceIsCurrent: a commit that changes a flag, a field, a metric or a reason
// changes its page.
func TestReferenceIsCurrent(t *testing.T) {
	all, err := allPages()
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range all {
		want, err := page()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		is, err := os.ReadFile(pathOf(name))
		if err != nil {
			t.Errorf("%v: make generate", err)
			continue
		}
		if diff := cmp.Diff(string(is), want); diff != "" {
			t.Errorf("make generate changes docs/reference/%s (-is +would be):\n%s", name, diff)
		}
	}
	files, err := filepath.Glob(pathOf("commands/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, exists := all["commands/"+filepath.Base(file)]; !exists {
			t.Errorf("%s is the page of a command that is gone: make generate", file)
		}
	}
}
