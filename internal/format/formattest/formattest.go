// Package formattest compares what the current code stores with what older releases have stored.
package formattest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Oldest is the oldest release whose state is read.
const Oldest = "v0.1.0"

// Frozen returns a file with state of the release [Oldest], without the line break at its end.
func Frozen(tb testing.TB, name string) string {
	tb.Helper()
	return read(tb, Oldest, name)
}

// Newer returns a file with state of a release that does not exist, in format 2.
func Newer(tb testing.TB, name string) string {
	tb.Helper()
	return read(tb, "newer", name)
}

// read finds the folder test/state above the package whose test runs.
func read(tb testing.TB, release, name string) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "test", "state", release, name))
		if err == nil {
			return strings.TrimSuffix(string(text), "\n")
		}
		if dir == filepath.Dir(dir) {
			tb.Fatalf("no folder above has test/state/%s/%s", release, name)
		}
	}
}

// Same fails unless a type reads a frozen document and writes exactly that, and unless the document has each field of the type
// with a value, except those that docs/reference/state.md names as newer, such as .Proof.
func Same[T any](tb testing.TB, document string, newer ...string) T {
	tb.Helper()
	var value T
	d := json.NewDecoder(strings.NewReader(document))
	d.DisallowUnknownFields()
	if err := d.Decode(&value); err != nil {
		tb.Fatalf("%s is no longer read: %v", document, err)
	}
	var written bytes.Buffer
	e := json.NewEncoder(&written)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		tb.Fatal(err)
	}
	if got := strings.TrimSuffix(written.String(), "\n"); got != document {
		tb.Errorf("written otherwise than %s did:\n got %s\nwant %s", Oldest, got, document)
	}
	for _, path := range empty(reflect.ValueOf(value), "") {
		if slices.Contains(newer, path) {
			continue
		}
		tb.Errorf("%s stores no field%s: say in docs/reference/state.md what a program does that does not know it, and whether the format rises", Oldest, path)
	}
	return value
}

// empty lists the fields without a value, of structs of this repository.
func empty(v reflect.Value, path string) []string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return []string{path}
		}
		if v.Elem().Kind() == reflect.Struct {
			return empty(v.Elem(), path)
		}
	case reflect.Slice, reflect.Map:
		if v.Len() == 0 {
			return []string{path}
		}
		if v.Kind() == reflect.Slice {
			return empty(v.Index(0), path+"[0]")
		}
		first := v.MapRange()
		first.Next()
		return empty(first.Value(), path+"{}")
	case reflect.Struct:
		if !strings.Contains(v.Type().PkgPath(), "godwit") {
			break
		}
		var all []string
		for i := range v.NumField() {
			name := "." + v.Type().Field(i).Name
			if v.Type().Field(i).Anonymous {
				name = ""
			}
			all = append(all, empty(v.Field(i), path+name)...)
		}
		return all
	}
	if v.IsZero() {
		return []string{path}
	}
	return nil
}
