package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit"
)

// TestFailureLines: a cause is said once, with the objects that have it.
func TestFailureLines(t *testing.T) {
	denied, invalid := &godwit.Reason{Name: "Denied"}, &godwit.Reason{Name: "Invalid"}
	of := func(name string, reason *godwit.Reason, message string) godwit.Failure {
		return godwit.Failure{Namespace: "shop", Name: name, Finding: godwit.Finding{Reason: reason, Message: message}}
	}
	whole := godwit.Failure{Name: "widgets.example.com", Finding: godwit.Finding{Reason: invalid, Message: "the server is gone"}}
	for name, test := range map[string]struct {
		failures []godwit.Failure
		counts   godwit.Counts
		want     string
	}{
		"none": {nil, godwit.Counts{}, ""},
		"alike but for the name": {
			[]godwit.Failure{
				of("a", denied, `widget "a" in shop is denied.`), of("b", invalid, "b is wrong"), of("c", denied, `widget "c" in shop is denied.`), of("a.c", denied, `widget "a.c" in shop is denied.`),
			},
			godwit.Counts{Failed: 4},
			`
widgets.example.com
  ✗ shop/a: Denied: widget "a" in shop is denied.
    the same for 2 more objects: shop/c, shop/a.c
  ✗ shop/b: Invalid: b is wrong
`,
		},
		"more than the text names": {
			[]godwit.Failure{of("a", denied, "no"), of("b", denied, "no"), of("c", denied, "no"), of("d", denied, "no"), of("e", denied, "no")},
			godwit.Counts{Failed: 4, Deferred: 1},
			`
widgets.example.com
  ✗ shop/a: Denied: no
    the same for 4 more objects: shop/b, shop/c, shop/d, …
  -o json names all
`,
		},
		"more than the report names": {
			[]godwit.Failure{whole, of("a", denied, "no")}, godwit.Counts{Failed: 3},
			`
widgets.example.com
  ✗ Invalid: the server is gone
  ✗ shop/a: Denied: no
  … and 2 more objects: -o json names all
`,
		},
	} {
		if diff := cmp.Diff(test.want, FailureLines(Style{}, "widgets.example.com", test.failures, test.counts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
