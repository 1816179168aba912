package request

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

// TestSizesOfWrites: a write that is measured asks for the whole object, whose size counts, and any other asks for metadata.
func TestSizesOfWrites(t *testing.T) {
	const small, padding = 16 << 20, 128 << 10
	cases := map[string]struct {
		reason          string
		limit           int64
		resourceVersion string // of the answer; the object had 1
		writes          int
		least, most     int // whole objects that are asked for
		waits           bool
	}{
		"a sample":         {"half of the default budget is not used", 0, "2", 100, 5, 60, false},
		"a smaller budget": {"a sample is not exact enough", small, "2", 100, 100, 100, false},
		"elided":           {"what etcd did not store takes no room", small, "1", 300, 300, 300, false},
		"the size counts":  {"124 objects of 128 KiB leave no room for the largest", small, "2", 124, 124, 124, true},
		"no budget":        {"no size is needed", -1, "2", 100, 0, 0, false},
	}
	for name, tc := range cases {
		whole := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			kind, spec := "PartialObjectMetadata", ""
			if r.Header.Get("Accept") != kube.AcceptMetadata {
				whole++
				kind, spec = "Widget", strings.Repeat("x", padding)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"apiVersion":"meta.k8s.io/v1","kind":%q,"metadata":{"name":"a","resourceVersion":%q},"spec":%q}`, kind, tc.resourceVersion, spec)
		}))
		limiter := walk.NewLimiter(walk.Limits{MaxBytesPerFiveMinutes: tc.limit})
		client, err := New(&rest.Config{Host: server.URL}, limiter, clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", ResourceVersion: "1"}}
		for range tc.writes {
			after, err := client.PatchObject(t.Context(), schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, o,
				Patch{Kind: types.MergePatchType, Body: []byte("{}"), Manager: kube.FieldManager})
			if err != nil || after.ResourceVersion != tc.resourceVersion {
				t.Fatalf("%s: resourceVersion %q, %v", name, after.ResourceVersion, err)
			}
		}
		server.Close()
		if whole < tc.least || whole > tc.most {
			t.Errorf("%s: %d of %d writes asked for the whole object, want %d to %d: %s", name, whole, tc.writes, tc.least, tc.most, tc.reason)
		}
		if waits := waitsForRoom(t, limiter); waits != tc.waits {
			t.Errorf("%s: the next write waits for room: %t, want %t: %s", name, waits, tc.waits, tc.reason)
		}
	}
}

// waitsForRoom reports whether the next write does.
func waitsForRoom(t *testing.T, l *walk.Limiter) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	return l.Write(ctx, func(context.Context) (int64, error) { return 0, nil }) != nil
}

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
