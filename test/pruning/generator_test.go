package pruning

import (
	"math/rand/v2"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// generator makes structural schemas, and objects that are valid at one.
type generator struct{ *rand.Rand }

type schema = apiextensionsv1.JSONSchemaProps

// keys are few, so that two schemas share some, and that the fields of all objects are among them.
var keys = []string{"a", "b", "c", "apiVersion", "kind", "metadata"}

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

// pair returns a schema, and one that differs from it at a few places.
func (g generator) pair() (from, to *schema) {
	from = &schema{Type: "object", Properties: map[string]schema{"spec": g.objectSchema(3)}}
	if g.chance(30) {
		from.XPreserveUnknownFields = new(true)
	}
	to = from.DeepCopy()
	for range g.IntN(3) {
		g.change(to, 4)
	}
	if g.chance(5) {
		to.Properties["spec"] = g.objectSchema(3)
	}
	return from, to
}

// change changes one place of a schema.
func (g generator) change(s *schema, depth int) {
	if depth > 0 && g.chance(80) {
		switch {
		case len(s.Properties) > 0 && g.chance(80):
			names := sortedKeys(s.Properties)
			name := names[g.IntN(len(names))]
			if s.XEmbeddedResource && ofEachObject(name) {
				return
			}
			inner := s.Properties[name]
			g.change(&inner, depth-1)
			s.Properties[name] = inner
			return
		case s.Items != nil && s.Items.Schema != nil:
			g.change(s.Items.Schema, depth-1)
			return
		case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
			g.change(s.AdditionalProperties.Schema, depth-1)
			return
		}
	}
	if depth == 4 { // the root stays an object
		name := keys[g.IntN(3)]
		if _, there := s.Properties[name]; there {
			delete(s.Properties, name)
		} else {
			s.Properties[name] = g.schema(2)
		}
		return
	}
	switch g.IntN(4) {
	case 0:
		*s = g.schema(2)
	case 1:
		s.Nullable = !s.Nullable
	default:
		if s.Type != "object" || s.AdditionalProperties != nil {
			*s = g.schema(2)
			return
		}
		name := keys[g.IntN(len(keys))]
		if _, there := s.Properties[name]; there {
			delete(s.Properties, name)
			return
		}
		if s.Properties == nil {
			s.Properties = map[string]schema{}
		}
		s.Properties[name] = g.property(s, name, 2)
	}
}

// ofEachObject reports whether each object has the field, also one that is embedded in another.
func ofEachObject(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}

// property returns a schema for a field.
func (g generator) property(of *schema, name string, depth int) schema {
	switch {
	case of.XEmbeddedResource && name == "metadata":
		return schema{Type: "object"}
	case of.XEmbeddedResource && ofEachObject(name):
		return schema{Type: "string"}
	}
	return g.schema(depth)
}

func (g generator) schema(depth int) schema {
	s := schema{}
	switch n := g.IntN(10); {
	case depth == 0 || n < 3:
		s.Type = []string{"string", "integer", "number", "boolean"}[g.IntN(4)]
	case n < 4:
		s.XIntOrString = true
	case n < 5:
		s.XPreserveUnknownFields = new(true)
		if g.chance(50) {
			s.Type = "object"
		}
	case n < 6:
		item := g.schema(depth - 1)
		s.Type, s.Items = "array", &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}
		if g.chance(20) {
			s.XPreserveUnknownFields = new(true)
		}
	case n < 7:
		value := g.schema(depth - 1)
		s.Type, s.AdditionalProperties = "object", &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &value}
		if g.chance(20) {
			s.AdditionalProperties.Schema = nil
		}
	default:
		s = g.objectSchema(depth)
	}
	s.Nullable = g.chance(20)
	return s
}

func (g generator) objectSchema(depth int) schema {
	s := schema{Type: "object"}
	if g.chance(20) {
		s.XPreserveUnknownFields = new(true)
	}
	if g.chance(15) {
		s.XPreserveUnknownFields, s.XEmbeddedResource = new(true), true
	}
	for _, name := range keys {
		if g.chance(40) {
			if s.Properties == nil {
				s.Properties = map[string]schema{}
			}
			s.Properties[name] = g.property(&s, name, depth-1)
		}
	}
	return s
}

// object returns an object that is valid at a schema.
func (g generator) object(s *schema) map[string]any {
	o := g.fields(s, 5)
	o["apiVersion"], o["kind"], o["metadata"] = "example.com/v1", "Widget", map[string]any{"name": "a"}
	return o
}

func (g generator) fields(s *schema, depth int) map[string]any {
	o := map[string]any{}
	for _, name := range append([]string{"spec", "d"}, keys...) {
		inner, known := s.Properties[name]
		switch {
		case g.chance(15):
		case known:
			o[name] = g.value(&inner, depth-1)
		case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
			o[name] = g.value(s.AdditionalProperties.Schema, depth-1)
		case s.AdditionalProperties != nil, s.XPreserveUnknownFields != nil:
			o[name] = g.any(depth - 1)
		}
	}
	if s.XEmbeddedResource {
		o["apiVersion"], o["kind"], o["metadata"] = "example.com/v1", "Part", map[string]any{"name": "b", "labels": map[string]any{"a": "b"}}
	}
	return o
}

func (g generator) value(s *schema, depth int) any {
	if s.Nullable && g.chance(20) {
		return nil
	}
	switch {
	case s.XIntOrString && g.chance(50), s.Type == "integer":
		return int64(1)
	case s.XIntOrString, s.Type == "string":
		return "text"
	case s.Type == "number":
		return 0.5
	case s.Type == "boolean":
		return true
	case s.Type == "array":
		list := make([]any, 1+g.IntN(2))
		for i := range list {
			if s.Items != nil && s.Items.Schema != nil {
				list[i] = g.value(s.Items.Schema, depth-1)
			} else {
				list[i] = g.any(depth - 1)
			}
		}
		return list
	case s.Type == "object":
		return g.fields(s, depth)
	}
	return g.any(depth)
}

// any returns a value of any form.
func (g generator) any(depth int) any {
	switch n := g.IntN(8); {
	case depth <= 0 || n < 3:
		return []any{"text", int64(1), 0.5, true}[g.IntN(4)]
	case n < 4:
		return nil
	case n < 6:
		o := map[string]any{}
		for _, name := range keys[:3+g.IntN(4)] {
			o[name] = g.any(depth - 1)
		}
		return o
	}
	return []any{g.any(depth - 1), g.any(depth - 1)}
}

func sortedKeys(m map[string]schema) []string {
	var all []string
	for _, k := range keys {
		if _, ok := m[k]; ok {
			all = append(all, k)
		}
	}
	if _, ok := m["spec"]; ok {
		all = append(all, "spec")
	}
	return all
}

func text(s *schema) string {
	b, err := yaml.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
