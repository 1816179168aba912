package request

import (
	"strings"
	"testing"
)

// TestMetadataIn an answer of the API server, and in what is none.
func TestMetadataIn(t *testing.T) {
	cases := map[string]struct {
		reason string
		object string
		want   string // its resourceVersion; empty: an error
	}{
		"a custom resource": {"its keys are sorted", `{"apiVersion":"a/v1","kind":"A","metadata":{"resourceVersion":"7"},"spec":{"metadata":{"resourceVersion":"8"}}}`, "7"},
		"fields before it":  {"a schema may name them as it likes", `{"data":{"metadata":{"resourceVersion":"8"},"list":[1,{}]},"empty":null,"metadata":{"resourceVersion":"7"}}`, "7"},
		"nothing after it":  {"what follows is not looked at", `{"metadata":{"resourceVersion":"7"},"spec":{` + strings.Repeat("x", 1000), "7"},
		"cut off":           {"half of an answer says nothing", `{"apiVersion":"a/v1","metadata":{"resourceVersion":"7`, ""},
		"cut off before":    {"likewise", `{"data":{"a":`, ""},
		"no metadata":       {"no object is without", `{"kind":"Status"}`, ""},
		"a list":            {"no object", `["metadata",{}]`, ""},
		"no JSON":           {"a proxy has answered", `<html>`, ""},
		"nothing":           {"likewise", ``, ""},
	}
	for name, tc := range cases {
		m, err := metadataIn([]byte(tc.object))
		if m.ResourceVersion != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: resourceVersion %q, error %v; want %q: %s", name, m.ResourceVersion, err, tc.want, tc.reason)
		}
	}
}
