package values

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

type schema = apiextensionsv1.JSONSchemaProps

// Unkept returns the paths at which the first schema keeps values that the second may drop or refuse, in order. With no
// path, every object that is valid at the first schema keeps each of its values at the second, if nothing but pruning
// changes it. In a path such as spec.tls[].ports{}, [] is an item of a list, and {} a value of a map.
//
// Where the two schemas do not settle it, Unkept returns the path: it never leaves out one at which the API server drops
// a value.
func Unkept(from, to *schema) []string {
	c := comparison{}
	if from == nil || to == nil || !equality.Semantic.DeepEqual(from, to) {
		c.compareKeys("", root(from), root(to))
	}
	slices.Sort(c.unkept)
	return slices.Compact(c.unkept)
}

// node is what the API server keeps of the value at one path.
type node struct {
	schema *schema
	// preserve means that keys which the schema lacks are kept, with everything below them. Without a schema, everything
	// is kept if preserve is true; otherwise only scalars are, and the keys of maps are dropped.
	preserve bool
	// absent means that the whole value is dropped.
	absent bool
	// embedded means that the API server keeps apiVersion, kind and metadata, in the form that every object has.
	embedded bool
}

var (
	dropped   = node{absent: true}
	anyValue  = node{preserve: true}
	metaField = node{schema: &schema{Type: "string"}}
)

func nodeOf(s *schema) node {
	if s == nil {
		return node{}
	}
	return node{schema: s, preserve: preserves(s), embedded: s.XEmbeddedResource}
}

// root is the node of a whole object, which has apiVersion, kind and metadata in each schema.
func root(s *schema) node {
	n := nodeOf(s)
	n.embedded = true
	return n
}

func preserves(s *schema) bool { return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields }

// key is the node of the value at a key of a map. An empty key is one that neither schema has.
func (n node) key(k string) node {
	if n.schema != nil {
		if s, ok := n.schema.Properties[k]; ok && k != "" {
			return nodeOf(&s)
		}
		if more := n.schema.AdditionalProperties; more != nil && (more.Allows || more.Schema != nil) {
			return nodeOf(more.Schema)
		}
	}
	if n.preserve {
		return anyValue
	}
	return dropped
}

// items is the node of the items of a list.
func (n node) items() node {
	if n.schema == nil || n.schema.Items == nil || n.schema.Items.Schema == nil {
		return node{preserve: n.preserve}
	}
	items := nodeOf(n.schema.Items.Schema)
	items.preserve = items.preserve || n.preserve
	return items
}

// types are the JSON types of the values that the API server accepts; nil means all.
func (n node) types() []string {
	switch {
	case n.schema == nil:
		return nil
	case n.schema.XIntOrString:
		return []string{"integer", "string"}
	case n.schema.Type == "":
		return nil
	case n.schema.Type == "number":
		return []string{"integer", "number"}
	}
	return []string{n.schema.Type}
}

// mayBe reports whether the value may have one of the types.
func (n node) mayBe(kind string) bool {
	all := n.types()
	return all == nil || slices.Contains(all, kind)
}

// acceptsNull reports whether the API server keeps a null.
func (n node) acceptsNull() bool { return n.schema == nil || n.schema.Nullable }

// accepts reports whether each value that from accepts is accepted. A null of a path that is not nullable is dropped.
func (n node) accepts(from node) bool {
	if n.schema == nil {
		return true
	}
	if from.acceptsNull() && !n.acceptsNull() {
		return false
	}
	accepted, held := n.types(), from.types()
	return accepted == nil || held != nil && !slices.ContainsFunc(held, func(t string) bool { return !slices.Contains(accepted, t) })
}

type comparison struct{ unkept []string }

// compare compares what is kept of the value at a path.
func (c *comparison) compare(path string, from, to node) {
	switch {
	case from.absent, from.keptBy(to):
	case to.absent, !to.accepts(from), from.schema == nil && to.schema == nil:
		c.unkept = append(c.unkept, path)
	default:
		if from.mayBe("object") {
			c.compareKeys(path, from, to)
		}
		if from.mayBe("array") {
			c.compare(path+"[]", from.items(), to.items())
		}
	}
}

// keptBy reports whether the other node surely keeps what this one keeps, without a look below it.
func (n node) keptBy(to node) bool {
	switch {
	case to.absent:
		return false
	case to.schema == nil:
		return to.preserve || n.schema == nil && !n.preserve
	}
	return n.schema != nil && n.preserve == to.preserve && equality.Semantic.DeepEqual(n.schema, to.schema)
}

// metaFields are kept in each object, also if it is embedded in another.
var metaFields = []string{"apiVersion", "kind", "metadata"}

func (c *comparison) compareKeys(path string, from, to node) {
	for _, k := range keys(from, to) {
		before, after := from.key(k), to.key(k)
		if slices.Contains(metaFields, k) {
			switch {
			case from.embedded && to.embedded:
				continue
			case to.embedded && !before.absent: // the API server drops what is no metadata
				after = dropped
			case from.embedded:
				before = embeddedField(k)
			}
		}
		c.compare(join(path, k), before, after)
	}
}

func embeddedField(k string) node {
	if k == "metadata" {
		return anyValue
	}
	return metaField
}

// keys are those of either node, and an empty one for all others.
func keys(from, to node) []string {
	all := []string{""}
	for _, n := range []node{from, to} {
		if n.embedded {
			all = append(all, metaFields...)
		}
		if n.schema != nil {
			all = slices.AppendSeq(all, maps.Keys(n.schema.Properties))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// join appends a key to a path. An empty key stands for each value of a map.
func join(path, key string) string {
	switch {
	case key == "":
		return path + "{}"
	case path == "":
		return key
	}
	return path + "." + key
}
