package e2e_test

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const chartFolder = "../../../charts/godwit/"

// expectAllUsed fails for each value of the chart to which no set gives another value than its default.
func expectAllUsed(t *testing.T, sets ...map[string]any) {
	t.Helper()
	schema, defaults := readObject(t, chartFolder+"values.schema.json"), readObject(t, chartFolder+"values.yaml")
	unused := map[string]bool{}
	for _, path := range leaves(schema, schema, "") {
		unused[path] = true
	}
	if len(unused) < 100 { // it has more, and a schema that is read in the wrong way has few
		t.Fatalf("the schema has %d values", len(unused))
	}
	for _, set := range sets {
		text, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		var values map[string]any
		if err := json.Unmarshal(text, &values); err != nil {
			t.Fatal(err)
		}
		use(unused, values, defaults, "")
	}
	for _, path := range slices.Sorted(maps.Keys(unused)) {
		t.Errorf("no release of this test has the value %s of the chart: add one to a set of values, and look for what it does", path)
	}
}

// readObject reads a file in JSON or YAML.
func readObject(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// leaves returns the paths of the values that a schema has within a path. A value whose parts the schema does not name is one. The items
// of a list have the path of the list and [].
func leaves(root, schema map[string]any, path string) []string {
	if name, ok := schema["$ref"].(string); ok {
		definitions, _ := root["$defs"].(map[string]any)
		schema, _ = definitions[strings.TrimPrefix(name, "#/$defs/")].(map[string]any)
	}
	var found []string
	if properties, ok := schema["properties"].(map[string]any); ok {
		for name, property := range properties {
			property, _ := property.(map[string]any)
			found = append(found, leaves(root, property, join(path, name))...)
		}
		return found
	}
	if items, ok := schema["items"].(map[string]any); ok {
		if found := leaves(root, items, path+"[]"); len(found) != 1 || found[0] != path+"[]" {
			return found
		}
	}
	return []string{path}
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// use removes the paths that values have within a path, unless the value is the default.
func use(unused map[string]bool, value, byDefault any, path string) {
	if !reflect.DeepEqual(value, byDefault) {
		delete(unused, path)
	}
	switch value := value.(type) {
	case map[string]any:
		defaults, _ := byDefault.(map[string]any)
		for name, v := range value {
			use(unused, v, defaults[name], join(path, name))
		}
	case []any:
		for _, v := range value {
			use(unused, v, nil, path+"[]")
		}
	}
}

// isPart reports whether an object has all that is wanted: the same values, and for each item of a list an item of which it is a part.
func isPart(wanted, object any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		there, _ := object.(map[string]any)
		for name, v := range wanted {
			if !isPart(v, there[name]) {
				return false
			}
		}
		return there != nil
	case []any:
		there, _ := object.([]any)
		for _, v := range wanted {
			if !slices.ContainsFunc(there, func(o any) bool { return isPart(v, o) }) {
				return false
			}
		}
		return there != nil
	}
	return reflect.DeepEqual(wanted, object)
}
