package kubevirt

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// shapesJSON is generated from the Go types of kubevirt.io/api v1.6.3 by a program in
// test/kubevirt. Types are named as Go names them: "[]T" is a list, "{}T" an object
// with keys of its own, "any" whatever, and what has a slash is a shape.
//
//go:embed shapes.json
var shapesJSON []byte

type shapeTable struct {
	// Kinds by version: the name of the shape of each kind.
	Kinds map[string]map[string]string
	// Shapes by name: the type of each field.
	Shapes map[string]map[string]string
}

var shapes = sync.OnceValue(func() shapeTable {
	var t shapeTable
	if err := json.Unmarshal(shapesJSON, &t); err != nil {
		panic(fmt.Sprintf("read the embedded shapes.json: %v", err))
	}
	return t
})

// maxUnknown paths of unknown fields are reported. Who has more has other worries.
const maxUnknown = 100

// A finding is what comes of holding a value against a shape.
type finding struct {
	// unknown are the paths of fields that the shape does not have, sorted.
	unknown []string
	// err says what is of another type than the shape says, and where.
	err error
}

// clean: the value is of the shape and of nothing else.
func (f finding) clean() bool { return f.err == nil && len(f.unknown) == 0 }

// checkObject holds an object against the shape of its kind at a version.
func checkObject(version string, k kind, object map[string]any) finding {
	var f finding
	f.check(shapes().Kinds[version][k.name], object, "")
	return f
}

// checkSpec holds the spec of an object against the shape of its kind at a version.
func checkSpec(version string, k kind, spec any) finding {
	t := shapes()
	var f finding
	f.check(t.Shapes[t.Kinds[version][k.name]]["spec"], spec, "spec")
	return f
}

// check is in order of keys, so that it always finds the same.
func (f *finding) check(of string, value any, path string) {
	if f.err != nil || value == nil { // null is no value, which every type may have
		return
	}
	fields, isShape := shapes().Shapes[of]
	switch {
	case isShape, strings.HasPrefix(of, "{}"):
		object, ok := value.(map[string]any)
		if !ok {
			f.err = mismatch(path, value, "an object")
			return
		}
		for _, key := range slices.Sorted(maps.Keys(object)) {
			field, known := strings.CutPrefix(of, "{}")
			if isShape {
				field, known = fields[key]
			}
			at := fieldPath(path, key)
			switch {
			case known:
				f.check(field, object[key], at)
			case len(f.unknown) < maxUnknown:
				f.unknown = append(f.unknown, at)
			}
		}
	case strings.HasPrefix(of, "[]"):
		list, ok := value.([]any)
		if !ok {
			f.err = mismatch(path, value, "a list")
			return
		}
		for i, element := range list {
			f.check(strings.TrimPrefix(of, "[]"), element, elementPath(path, i))
		}
	default:
		if !isScalar(of, value) {
			f.err = mismatch(path, value, "a value of type "+of)
		}
	}
}

// isScalar is whether a value is what KubeVirt's reader takes for the type. Numbers
// must be written as the type is: 1e3 is no integer to it.
func isScalar(of string, value any) bool {
	text, isString := value.(string)
	switch of {
	case "any":
		return true
	case "string":
		return isString
	case "bool":
		_, ok := value.(bool)
		return ok
	case "time":
		_, err := time.Parse(time.RFC3339, text)
		return isString && err == nil
	case "quantity":
		digits, isNumber := numberText(value)
		return isString && isQuantity(text) || isNumber && isQuantity(digits)
	}
	digits, isNumber := numberText(value)
	if !isNumber {
		return false
	}
	var err error
	switch of {
	case "int32", "int64":
		_, err = strconv.ParseInt(digits, 10, bits(of))
	case "uint32", "uint64":
		_, err = strconv.ParseUint(digits, 10, bits(of))
	default:
		panic("shapes.json has a type without a check: " + of)
	}
	return err == nil
}

func bits(of string) int {
	if strings.HasSuffix(of, "32") {
		return 32
	}
	return 64
}

// isQuantity does not try text of any length: digits are read in quadratic time.
func isQuantity(text string) bool {
	const most = 1024
	if len(text) > most {
		return false
	}
	_, err := resource.ParseQuantity(strings.TrimSpace(text))
	return err == nil
}

func numberText(value any) (string, bool) {
	switch n := value.(type) {
	case int64:
		return strconv.FormatInt(n, 10), true
	case json.Number:
		return n.String(), true
	}
	return "", false
}

func mismatch(path string, value any, want string) error {
	found := "a number"
	switch v := value.(type) {
	case map[string]any:
		found = "an object"
	case []any:
		found = "a list"
	case bool:
		found = "a boolean"
	case string:
		const most = 40
		found = strconv.Quote(v)
		if len(v) > most {
			found = strconv.Quote(v[:most]) + "…"
		}
	case int64, json.Number:
		if digits, _ := numberText(v); len(digits) < 40 {
			found = digits
		}
	}
	return fmt.Errorf("%s is %s, want %s", shown(path), found, want)
}
