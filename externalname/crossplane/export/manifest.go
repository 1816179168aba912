package export

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// empty returns a new object of the type of another one.
func empty[M resource.Managed](of M) M {
	return reflect.New(reflect.TypeOf(of).Elem()).Interface().(M)
}

// observed is an external resource that was read by the key of its name.
type observed[M resource.Managed, X any] struct {
	name     string
	resource X
	object   M
}

// fill returns the object of a manifest, without its metadata.name.
func (k kind[M, K, X]) fill(name string, of X) observed[M, X] {
	object := k.options.New()
	object.SetManagementPolicies(append(object.GetManagementPolicies()[:0], "Observe"))
	meta.SetExternalName(object, name)
	k.options.Fill(object, of)
	return observed[M, X]{name: name, resource: of, object: object}
}

// prove parses the manifest and compares it with the external resource, which was read only by the key in its name.
func (k kind[M, K, X]) prove(o observed[M, X], diff func(M, X) []crossplane.Difference) error {
	document, err := encode(k.resource.Kind, o.object)
	if err != nil {
		return err
	}
	decoded := empty(o.object)
	if err := yaml.UnmarshalStrict(document, decoded); err != nil {
		return fmt.Errorf("read the manifest back: %w", err)
	}
	name := meta.GetExternalName(decoded)
	if name != o.name {
		return fmt.Errorf("read the manifest back: external name %q became %q: Fill must not change it", o.name, name)
	}
	if _, err := k.resource.Names.Codec.Parse(name); err != nil {
		return fmt.Errorf("read the manifest back: %w", err)
	}
	if differences := diff(decoded, o.resource); len(differences) > 0 {
		fields := make([]string, len(differences))
		for i, d := range differences {
			fields[i] = d.Field
		}
		return fmt.Errorf("the manifest differs from the external resource in %s: Fill must fill these fields", strings.Join(fields, ", "))
	}
	return nil
}

// encode writes an object as a user does: without a status and without the fields that an API server sets.
func encode(kind schema.GroupVersionKind, object runtime.Object) ([]byte, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	fields["apiVersion"], fields["kind"] = kind.ToAPIVersionAndKind()
	delete(fields, "status")
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	document, err := yaml.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return document, nil
}
