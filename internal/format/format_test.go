package format

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason, document string
		format           string // that is refused
	}{
		"current":          {"this release wrote it", `{"format":1,"a":2}`, ""},
		"none":             {"it is of format 1", `{"a":2}`, ""},
		"newer":            {"a field may mean another thing", `{"format":2}`, "2"},
		"newer, elsewhere": {"a field of another object is not the document's", `{"a":{"format":2}}`, ""},
		"a word":           {"only a newer release writes that", `{"format":"2.1"}`, `"2.1"`},
		"null":             {"Go takes it for none", `{"format":null}`, "null"},
		"zero":             {"no release writes it", `{"format":0}`, "0"},
		"cut off":          {"its reader says what it makes of it", `{"format":2`, ""},
		"a list":           {"the same", `[1]`, ""},
	}
	for name, c := range cases {
		err := Check("annotation a of b", []byte(c.document))
		var newer *NewerError
		if errors.As(err, &newer) != (c.format != "") || newer != nil && newer.Format != c.format {
			t.Errorf("%s: %v, want format %q to be refused: %s", name, err, c.format, c.reason)
		}
	}
}

func TestRefusalNamesObjectFormatAndRelease(t *testing.T) {
	o := &metav1.ObjectMeta{Annotations: map[string]string{Annotation: "2"}}
	err := CheckObject("crdmigration widgets.example.com", o)
	for _, word := range []string{"crdmigration widgets.example.com", Annotation, `"2"`, "reads format 1", "newer release"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not say %s", err, word)
		}
	}
	o.Annotations[Annotation] = "1"
	if err := CheckObject("", o); err != nil {
		t.Error(err)
	}
	if CheckNumber("", 0) != nil || CheckNumber("", 1) != nil || CheckNumber("", 2) == nil || CheckNumber("", -1) == nil {
		t.Error("only 0 and 1 are read")
	}
}
