// Package raced checks the names of tests that the Makefile selects for the race detector. go test runs nothing for a name
// that is of no test, and does not fail.
package raced

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the folder of the Makefile.
const root = "../.."

func TestNamesAreOfTests(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	packages, names := values(string(makefile), "RACED_SERVERS"), values(string(makefile), "RACED_TESTS")
	if len(packages) == 0 || len(names) == 0 {
		t.Fatalf("the Makefile names packages %q and tests %q, want some of each", packages, names)
	}
	tests, selected := map[string]string{}, map[string]bool{}
	for _, folder := range packages {
		for _, name := range testsOf(t, filepath.Join(root, folder)) {
			tests[name] = folder
		}
	}
	for _, name := range names {
		folder, ok := tests[name]
		if !ok {
			t.Errorf("RACED_TESTS has %s, which is no test of %s", name, strings.Join(packages, ", "))
		}
		selected[folder] = true
	}
	for _, folder := range packages {
		if !selected[folder] {
			t.Errorf("RACED_TESTS has no test of %s", folder)
		}
	}
}

// values returns the words of all assignments to a variable of the Makefile.
func values(makefile, variable string) []string {
	var words []string
	joined := strings.ReplaceAll(makefile, "\\\n", " ")
	for _, match := range regexp.MustCompile(`(?m)^`+variable+` [:+]= (.*)$`).FindAllStringSubmatch(joined, -1) {
		words = append(words, strings.Fields(match[1])...)
	}
	return words
}

// testsOf returns the names of the tests of a package.
func testsOf(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllStringSubmatch(string(text), -1) {
			names = append(names, match[1])
		}
	}
	return names
}
