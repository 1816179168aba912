package markers_test

import (
	"fmt"

	"github.com/godwit-dev/godwit/crdmigrator/markers"
)

// printer stands for the *testing.T that a test is given.
type printer struct{}

func (printer) Helper() {}

func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func (printer) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// The whole of a test, in the folder of which api is a part:
//
//	func TestEveryTypeIsMigratedOrExcluded(t *testing.T) {
//		markers.Require(t, markers.Options{}, "./api/...")
//	}
//
// A slip in the folder's name fails it as well.
func ExampleRequire() {
	var t printer
	markers.Require(t, markers.Options{}, "./testdata/apis/...")
	// Output:
	// read ./testdata/apis/...: stat testdata/apis: no such file or directory
}

// An operator that has had a label of its own for long.
func ExampleCheck() {
	findings, err := markers.Check(markers.Options{Label: "example.com/migrate=true"}, "./testdata/api/...")
	if err != nil {
		fmt.Println(err)
	}
	for _, f := range findings {
		fmt.Printf("%s:%d %s: %s\n", f.File, f.Line, f.Type, f.Reason)
	}
	// Output:
	// testdata/api/v1/gizmo_types.go:12 Gizmo: Missing
}
