package values

import "slices"

// Pruned returns an object as the API server reads it at a schema, if nothing but pruning changes it: without the fields that
// the schema lacks, and without nulls at paths that are not nullable. It does not change the object, and does not fill in
// defaults. A nil schema keeps no field but those of each object.
func Pruned(s *schema, object map[string]any) map[string]any {
	pruned, _ := root(s).prune(object).(map[string]any)
	return pruned
}

func (n node) prune(value any) any {
	if n.schema == nil && n.preserve {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for key, v := range value {
			if n.embedded && slices.Contains(metaFields, key) {
				kept[key] = v
				continue
			}
			if inner := n.key(key); !inner.absent && (v != nil || inner.acceptsNull()) {
				kept[key] = inner.prune(v)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, v := range value {
			kept[i] = n.items().prune(v)
		}
		return kept
	}
	return value
}

// acceptsNull reports whether the API server keeps a null.
func (n node) acceptsNull() bool { return n.schema == nil || n.schema.Nullable }
