// Command shapes writes the fields of KubeVirt's instance types and preferences, and
// the JSON type of each, to the file of its argument. It reads them from KubeVirt's
// own Go types, so that no developer copies them.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"kubevirt.io/api/instancetype/v1alpha1"
	"kubevirt.io/api/instancetype/v1alpha2"
	"kubevirt.io/api/instancetype/v1beta1"
)

// table is the file: versions, their kinds, and the name of the shape of each;
// named shapes, their fields, and the type of each.
type table struct {
	Kinds  map[string]map[string]string `json:"kinds"`
	Shapes map[string]map[string]string `json:"shapes"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("write shapes: got %d arguments, want the name of the file to write", len(args))
	}
	t := table{Kinds: map[string]map[string]string{}, Shapes: map[string]map[string]string{}}
	for _, object := range []any{
		v1alpha1.VirtualMachineInstancetype{}, v1alpha1.VirtualMachineClusterInstancetype{},
		v1alpha1.VirtualMachinePreference{}, v1alpha1.VirtualMachineClusterPreference{},
		v1alpha2.VirtualMachineInstancetype{}, v1alpha2.VirtualMachineClusterInstancetype{},
		v1alpha2.VirtualMachinePreference{}, v1alpha2.VirtualMachineClusterPreference{},
		v1beta1.VirtualMachineInstancetype{}, v1beta1.VirtualMachineClusterInstancetype{},
		v1beta1.VirtualMachinePreference{}, v1beta1.VirtualMachineClusterPreference{},
	} {
		if err := t.addKind(reflect.TypeOf(object)); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(t, "", "\t")
	if err != nil {
		return fmt.Errorf("encode shapes: %w", err)
	}
	if err := os.WriteFile(args[0], append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write shapes: %w", err)
	}
	return nil
}

func (t table) addKind(kind reflect.Type) error {
	shape, err := t.typeOf(kind)
	if err != nil {
		return err
	}
	version := path.Base(kind.PkgPath())
	if t.Kinds[version] == nil {
		t.Kinds[version] = map[string]string{}
	}
	t.Kinds[version][kind.Name()] = shape
	return nil
}

// typeOf returns the name of the JSON type of a Go type. For a struct, it also adds the shape.
func (t table) typeOf(of reflect.Type) (string, error) {
	if of.Kind() == reflect.Pointer {
		return t.typeOf(of.Elem())
	}
	switch of {
	case reflect.TypeFor[resource.Quantity]():
		return "quantity", nil
	case reflect.TypeFor[metav1.Time]():
		return "time", nil
	case reflect.TypeFor[metav1.FieldsV1]():
		return "any", nil
	}
	if custom := reflect.TypeFor[json.Unmarshaler](); reflect.PointerTo(of).Implements(custom) {
		return "", fmt.Errorf("%s reads JSON in a way of its own: name that here, and check it in revision/kubevirt", of)
	}
	switch of.Kind() {
	case reflect.Bool, reflect.String, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return of.Kind().String(), nil
	case reflect.Int, reflect.Uint: // KubeVirt runs on 64 bits
		return of.Kind().String() + "64", nil
	case reflect.Slice:
		element, err := t.typeOf(of.Elem())
		return "[]" + element, err
	case reflect.Map:
		element, err := t.typeOf(of.Elem())
		return "{}" + element, err
	case reflect.Struct:
		return t.shapeOf(of)
	default:
		return "", fmt.Errorf("%s is of a kind that has no name here", of)
	}
}

// shapeOf adds the fields of a struct, unless they are there.
func (t table) shapeOf(of reflect.Type) (string, error) {
	name := path.Base(path.Dir(of.PkgPath())) + "/" + path.Base(of.PkgPath()) + "." + of.Name()
	if t.Shapes[name] != nil {
		return name, nil
	}
	fields := map[string]string{}
	t.Shapes[name] = fields
	for _, field := range reflect.VisibleFields(of) {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && tag == "" || tag == "-" || !promoted(of, field) {
			continue // the fields of what is embedded are visible themselves
		}
		if tag == "" || fields[tag] != "" {
			return "", fmt.Errorf("field %s of %s has no name of its own in JSON", field.Name, of)
		}
		kind, err := t.typeOf(field.Type)
		if err != nil {
			return "", fmt.Errorf("field %s of %s: %w", tag, of, err)
		}
		fields[tag] = kind
	}
	return name, nil
}

// promoted reports whether a field is in the JSON object of the struct itself. It is
// false for a field of an embedded struct with a JSON name, such as ObjectMeta.
func promoted(of reflect.Type, field reflect.StructField) bool {
	for depth := 1; depth < len(field.Index); depth++ {
		if tag, _, _ := strings.Cut(of.FieldByIndex(field.Index[:depth]).Tag.Get("json"), ","); tag != "" {
			return false
		}
	}
	return true
}
