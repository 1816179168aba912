package values

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pruned returns an object as the API server reads it at a schema, if nothing but pruning changes it: without the fields that
// the schema lacks, without nulls at paths that are not nullable, and without what is no metadata of an embedded object. It
// does not change the object, and fills in no defaults. A nil schema keeps no field but those of each object.
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
				if v, ok := metaValue(key, v); ok {
					kept[key] = v
				}
				continue
			}
			if inner := n.key(key); !inner.absent && (v != nil || inner.acceptsNull()) {
				kept[key] = inner.prune(v)
			}
		}
		return kept
	case []any:
		kept, items := make([]any, len(value)), n.items()
		for i, v := range value {
			kept[i] = items.prune(v)
		}
		return kept
	}
	return value
}

// metaValue is the value of apiVersion, kind or metadata in the form that each object has; false if it is dropped.
func metaValue(key string, value any) (any, bool) {
	if key != "metadata" {
		_, ok := value.(string)
		return value, ok
	}
	fields, ok := value.(map[string]any)
	if !ok && value != nil {
		return value, true
	}
	kept := map[string]any{}
	for name, v := range fields {
		if objectMeta[name] {
			kept[name] = v
		}
	}
	return kept, true
}

// objectMeta has the names of the fields of metadata.
var objectMeta = func() map[string]bool {
	names := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[metav1.ObjectMeta]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}()
