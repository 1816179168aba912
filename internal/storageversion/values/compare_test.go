package values

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestLost(t *testing.T) {
	s := parse(t, `{type: object, properties: {spec: {type: object, properties: {m: {type: object, additionalProperties: {type: string}}, l: {type: array, items: {type: object, properties: {a: {type: string}}}}}}}}`)
	for name, c := range map[string]struct {
		reason, before, after string
		want                  []string
	}{
		"equal":         {"", `{"spec":{"a":1}}`, `{"spec":{"a":1}}`, nil},
		"gone":          {"", `{"spec":{"a":1}}`, `{"spec":{}}`, []string{"spec.a"}},
		"changed":       {"the earlier value does not survive", `{"spec":{"a":1}}`, `{"spec":{"a":2}}`, []string{"spec.a"}},
		"new":           {"no value is lost", `{"spec":{}}`, `{"spec":{"a":1}}`, nil},
		"null":          {"a null has a meaning where it is kept", `{"spec":{"a":null}}`, `{"spec":{}}`, []string{"spec.a"}},
		"in a map":      {"keys of maps are many", `{"spec":{"m":{"x":"1","y":"2"}}}`, `{"spec":{"m":{}}}`, []string{"spec.m{}"}},
		"in a list":     {"", `{"spec":{"l":[{"a":"1"},{"a":"2"}]}}`, `{"spec":{"l":[{"a":"1"},{}]}}`, []string{"spec.l[].a"}},
		"a shorter one": {"which item is which is not known", `{"spec":{"l":[{"a":"1"},{"a":"2"}]}}`, `{"spec":{"l":[{"a":"2"}]}}`, []string{"spec.l"}},
		"another form":  {"", `{"spec":{"a":{"b":1}}}`, `{"spec":{"a":"b"}}`, []string{"spec.a"}},
		"own fields":    {"the API server writes them", `{"apiVersion":"a/v1","metadata":{"generation":1,"resourceVersion":"1"}}`, `{"apiVersion":"a/v2","metadata":{"generation":2,"resourceVersion":"2"}}`, nil},
		"a label":       {"", `{"metadata":{"labels":{"a.b/c":"1"}}}`, `{"metadata":{"labels":{}}}`, []string{"metadata.labels[a.b/c]"}},
	} {
		if got := Paths(Lost(s, object(t, c.before), object(t, c.after))); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q: %s", name, got, c.want, c.reason)
		}
	}
	if got := Paths(Lost(nil, map[string]any{"a": int64(1), "b": int64(1)}, map[string]any{"a": 1.0, "b": int64(2)})); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%q, want b: 1 and 1.0 are the same number", got)
	}
}

// TestLostValuesHaveTheirPlace: the pointers find the values in the object.
func TestLostValuesHaveTheirPlace(t *testing.T) {
	before := object(t, `{"spec":{"a/b":1,"l":[{"c":"x"},{"c":"y"}]}}`)
	want := []Value{{"spec.a/b", "/spec/a~1b", 1.0}, {"spec.l[].c", "/spec/l/1/c", "y"}}
	if diff := cmp.Diff(want, Lost(nil, before, object(t, `{"spec":{"l":[{"c":"x"},{}]}}`))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLosses(t *testing.T) {
	var l Losses
	for _, o := range []string{"ns/d", "ns/a", "ns/b", "ns/c"} {
		l.Add(o, []string{"spec.b", "spec.a"})
	}
	l.Add("ns/e", []string{"spec.a"})
	want := []Loss{
		{Path: "spec.a", Objects: 5, Examples: []string{"ns/a", "ns/b", "ns/c"}},
		{Path: "spec.b", Objects: 4, Examples: []string{"ns/a", "ns/b", "ns/c"}},
	}
	got, more := l.List()
	if diff := cmp.Diff(want, got); diff != "" || more {
		t.Errorf("(-want +got), more is %v:\n%s", more, diff)
	}
	for i := range maxPaths {
		l.Add("ns/f", []string{string(rune('a'+i%26)) + string(rune('a'+i/26))})
	}
	if got, more := l.List(); len(got) != maxPaths || !more {
		t.Errorf("%d paths, more is %v, want %d and more", len(got), more, maxPaths)
	}
	other := []Loss{{Path: "spec.a", Objects: 7}, {Path: "spec.c", Objects: 1}}
	if diff := cmp.Diff([]Loss{other[0], want[1], other[1]}, Merge(want, other)); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
}
