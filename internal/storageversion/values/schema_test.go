package values

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
)

func parse(t *testing.T, text string) *schema {
	t.Helper()
	s := &schema{}
	if err := yaml.Unmarshal([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestUnkept(t *testing.T) {
	for name, c := range map[string]struct {
		reason, from, to string
		want             []string
	}{
		"equal":              {"", `{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`, nil},
		"one more":           {"a new field has no value yet", `{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string}, b: {type: string}}}`, nil},
		"one less":           {"the API server drops it", `{type: object, properties: {a: {type: string}, b: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`, []string{"b"}},
		"renamed":            {"nothing moves the value", `{type: object, properties: {spec: {type: object, properties: {old: {type: string}}}}}`, `{type: object, properties: {spec: {type: object, properties: {new: {type: string}}}}}`, []string{"spec.old"}},
		"in a list":          {"", `{type: object, properties: {l: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}}}`, `{type: object, properties: {l: {type: array, items: {type: object, properties: {a: {type: string}}}}}}`, []string{"l[].b"}},
		"in a map":           {"", `{type: object, properties: {m: {type: object, additionalProperties: {type: object, properties: {a: {type: string}, b: {type: string}}}}}}`, `{type: object, properties: {m: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}}}`, []string{"m{}.b"}},
		"no map":             {"each key is dropped", `{type: object, properties: {m: {type: object, additionalProperties: {type: string}}}}`, `{type: object, properties: {m: {type: object, properties: {a: {type: string}}}}}`, []string{"m{}"}},
		"a map for fields":   {"the values of the map accept them", `{type: object, properties: {m: {type: object, properties: {a: {type: string}}}}}`, `{type: object, properties: {m: {type: object, additionalProperties: {type: string}}}}`, nil},
		"integer to number":  {"each integer is a number", `{type: object, properties: {a: {type: integer}}}`, `{type: object, properties: {a: {type: number}}}`, nil},
		"number to integer":  {"0.5 is refused", `{type: object, properties: {a: {type: number}}}`, `{type: object, properties: {a: {type: integer}}}`, []string{"a"}},
		"int or string":      {"", `{type: object, properties: {a: {type: integer}}}`, `{type: object, properties: {a: {x-kubernetes-int-or-string: true}}}`, nil},
		"int only":           {"", `{type: object, properties: {a: {x-kubernetes-int-or-string: true}}}`, `{type: object, properties: {a: {type: integer}}}`, []string{"a"}},
		"object to string":   {"pruning drops the keys before the type is checked", `{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}`, `{type: object, properties: {a: {type: string}}}`, []string{"a"}},
		"nullable":           {"a null may be dropped", `{type: object, properties: {a: {type: string, nullable: true}}}`, `{type: object, properties: {a: {type: string}}}`, []string{"a"}},
		"preserved":          {"", `{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}`, `{type: object, properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`, nil},
		"preserved no more":  {"unknown keys are dropped", `{type: object, properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`, `{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}`, []string{"a.b", "a{}"}},
		"preserved, and new": {"an unknown value may have another form", `{type: object, properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`, `{type: object, properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: object}}}}}`, []string{"a.b"}},
		"embedded no more":   {"", `{type: object, properties: {a: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}`, `{type: object, properties: {a: {type: object, properties: {kind: {type: string}}}}}`, []string{"a.apiVersion", "a.metadata", "a{}"}},
		"embedded now":       {"what is no metadata is dropped", `{type: object, properties: {a: {type: object, properties: {metadata: {type: object, properties: {x: {type: string}}}}}}}`, `{type: object, properties: {a: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}`, []string{"a.metadata"}},
		"no schema":          {"everything is dropped", `{type: object, properties: {spec: {type: string}}}`, `{}`, []string{"spec"}},
	} {
		if got := Unkept(parse(t, c.from), parse(t, c.to)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q: %s", name, got, c.want, c.reason)
		}
	}
}

func TestUnkeptOfTheRoot(t *testing.T) {
	from := parse(t, `{type: object, properties: {apiVersion: {type: string}, kind: {type: string}, metadata: {type: object}, spec: {type: object}}}`)
	if got := Unkept(from, parse(t, `{type: object, properties: {spec: {type: object}}}`)); got != nil {
		t.Errorf("%q, want nothing: each object has apiVersion, kind and metadata", got)
	}
	if got := Unkept(from, nil); !slices.Equal(got, []string{"spec"}) {
		t.Errorf("%q, want spec: a version without a schema keeps nothing", got)
	}
}
