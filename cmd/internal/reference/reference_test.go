package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReferenceIsCurrent: a commit that changes a flag, a field, a metric or a reason
// changes its page.
func TestReferenceIsCurrent(t *testing.T) {
	for name, page := range pages {
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
}
