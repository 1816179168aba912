package values

import (
	"slices"
	"testing"
)

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		accepted, path string
		want           bool
	}{
		{"spec.a", "spec.a", true},
		{"spec.a", "spec.a.b", true},
		{"spec.a", "spec.a[].b", true},
		{"spec.a", "spec.a{}", true},
		{"spec.a", "spec.ab", false},
		{"spec.a.b", "spec.a", false},
		{"spec", "spec.a", true},
		{EveryPath, "spec.a", true},
	} {
		if got := Covers([]string{"status.x", c.accepted}, c.path); got != c.want {
			t.Errorf("%s covers %s: %t, want %t", c.accepted, c.path, got, c.want)
		}
	}
	if got := Uncovered([]string{"spec.a"}, []string{"spec.a.b", "spec.c"}); !slices.Equal(got, []string{"spec.c"}) {
		t.Errorf("not covered: %q, want spec.c", got)
	}
	if !Touches("spec.a", []string{"{}"}) || !Touches("spec.a.b", []string{"spec.a{}"}) || Touches("spec.b", []string{"spec.a{}"}) {
		t.Error("{} is each field that the schema does not name")
	}
	if !Touches("spec.a.b", []string{"spec.a"}) || !Touches("spec.a", []string{"spec.a.b"}) || Touches("spec.a", []string{"spec.b"}) {
		t.Error("a path touches those above it, those below it, and no other")
	}
}

func TestHas(t *testing.T) {
	s := parse(t, `{type: object, properties: {spec: {type: object, properties: {m: {type: object, additionalProperties: {type: object, properties: {x: {type: string}}}}, any: {type: object, x-kubernetes-preserve-unknown-fields: true}, l: {type: array, items: {type: object, properties: {a: {type: string}}}}}}}}`)
	for path, want := range map[string]bool{
		"spec": true, "spec.l": true, "spec.l[].a": true, "spec.l[].b": false, "spec.m": true, "spec.m{}": true, "spec.m{}.x": true, "spec.m{}.y": false,
		"spec.any.thing": true, "spec.lost": false, "status": false, "metadata.labels": true, EveryPath: true,
	} {
		if got := Has(s, path); got != want {
			t.Errorf("%s: %t, want %t", path, got, want)
		}
	}
}
