package evidence

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
)

const (
	early = "2026-01-01T10:00:00Z"
	late  = "2026-01-01T10:05:00Z"
)

func resourceWith(annotations map[string]string, conditions ...any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
	o.SetAnnotations(annotations)
	return o
}

func TestCreation(t *testing.T) {
	condition := func(kind, reason string) any { return map[string]any{"type": kind, "reason": reason} }
	for reason, test := range map[string]struct {
		object           *unstructured.Unstructured
		incomplete, lost bool
	}{
		"nothing was created":                {resourceWith(nil), false, false},
		"created, with a name":               {resourceWith(map[string]string{AnnotationSucceeded: early, AnnotationName: "a"}), false, false},
		"created, and the name is removed":   {resourceWith(map[string]string{AnnotationSucceeded: early}), false, true},
		"created, and the name is empty":     {resourceWith(map[string]string{AnnotationSucceeded: early, AnnotationName: ""}), false, true},
		"seen, and the name is removed":      {resourceWith(map[string]string{AnnotationBound: "a"}), false, true},
		"created, lost, and failed again":    {resourceWith(map[string]string{AnnotationSucceeded: early, AnnotationFailed: late}), false, true},
		"never created, as it fails":         {resourceWith(map[string]string{AnnotationPending: early, AnnotationFailed: late}), false, false},
		"a creation was begun":               {resourceWith(map[string]string{AnnotationPending: early}), true, false},
		"a creation was begun after another": {resourceWith(map[string]string{AnnotationPending: late, AnnotationSucceeded: early}), true, true},
		"in the same second, by the token":   {resourceWith(map[string]string{AnnotationPending: early, AnnotationFailed: early, AnnotationToken: "t"}), true, false},
		"an operation creates it":            {resourceWith(map[string]string{AnnotationSucceeded: early, AnnotationOperation: "op-1"}), false, false},
		"Upjet creates it":                   {resourceWith(map[string]string{AnnotationSucceeded: early}, condition("AsyncOperation", "Ongoing")), false, false},
		"Upjet has not created it":           {resourceWith(map[string]string{AnnotationSucceeded: early}, condition("LastAsyncOperation", "AsyncCreateFailure")), false, false},
		"Upjet has created it":               {resourceWith(map[string]string{AnnotationSucceeded: early}, condition("LastAsyncOperation", "Success"), condition("AsyncOperation", "Finished")), false, true},
		"a time that is not one":             {resourceWith(map[string]string{AnnotationSucceeded: "soon", AnnotationPending: "later"}), false, false},
	} {
		t.Run(reason, func(t *testing.T) {
			c := CreationOf(test.object)
			if lost := c.NameLost(test.object.GetAnnotations()[AnnotationName]); c.Incomplete != test.incomplete || lost != test.lost {
				t.Errorf("incomplete %v, lost %v; want %v, %v", c.Incomplete, lost, test.incomplete, test.lost)
			}
		})
	}
}

func TestWriteNameDeletesNothing(t *testing.T) {
	o := godwit.Object{Resource: "persons.example.org", Namespace: "ns", Name: "anna"}
	for _, f := range []godwit.Fix{WriteName(o, "", false), WriteName(o, "anna-1", false), WriteName(o, "", true)} {
		if strings.Contains(f.String(), "delete") {
			t.Errorf("the fix deletes: %s", f)
		}
		for _, a := range f.Actions() {
			if _, deletes := a.(godwit.Delete); deletes {
				t.Errorf("the fix deletes: %s", f)
			}
		}
	}
	if steps := len(WriteName(o, "", true)[0]); steps != 3 {
		t.Errorf("%d steps for a paused managed resource, want no step that pauses", steps)
	}
}
