package resource_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// TestOwnKeysAreRefused: a source can plant no label and no annotation of Godwit on the target, such as the format that keeps every agent from
// deleting an object. The original values of a migration are the only exception, since the target checks them.
//
// Matrix: H99.
func TestOwnKeysAreRefused(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/state.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{"godwit.dev/of-a-later-release": true, "part.of.godwit.dev/x": true}
	for _, key := range regexp.MustCompile("`((?:[a-z-]+\\.)?godwit\\.dev/[a-z-]*)`").FindAllStringSubmatch(string(page), -1) {
		name := key[1]
		if strings.HasSuffix(name, "/") {
			name += "00000000-0000-4000-8000-000000000004"
		}
		keys[name] = true
	}
	if len(keys) < 20 || !keys["godwit.dev/state-format"] || !keys["godwit.dev/migration"] {
		t.Fatalf("docs/reference/state.md has only %v", slices.Sorted(maps.Keys(keys)))
	}
	check := func(part, key string) error {
		content := map[string]any{}
		text := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"c1-admin-password","namespace":"c1"}}`
		if err := json.Unmarshal([]byte(text), &content); err != nil {
			t.Fatal(err)
		}
		content["metadata"].(map[string]any)[part] = map[string]any{key: "2"}
		return resource.Check("c1", content, resource.Rules(), nil)
	}
	for key := range keys {
		for _, part := range []string{"labels", "annotations"} {
			err := check(part, key)
			if part == "annotations" && key == resource.OriginalAnnotation {
				if err != nil {
					t.Errorf("the original values of a migration: %v", err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("key %s in %s is accepted: %v", key, part, err)
			}
		}
	}
	for _, key := range []string{"notgodwit.dev/x", "godwit.dev", "example.com/godwit.dev"} {
		if err := check("annotations", key); err != nil {
			t.Errorf("annotation %s is not Godwit's: %v", key, err)
		}
	}
}
