package frame

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
)

func TestOutput(t *testing.T) {
	objects := int64(2000000)
	list := crdreport.PlanList([]crdreport.Plan{{Name: "a.example.com", State: "Ready", Objects: &objects}})
	people := func(w io.Writer) error { _, err := io.WriteString(w, "a table\n"); return err }
	cases := map[string]struct{ reason, value, want string }{
		"nothing":             {"tables are for people", "", "a table\n"},
		"wide":                {"the table knows more", "wide", "a table\n"},
		"name":                {"for xargs", "name", "customresourcedefinition.apiextensions.k8s.io/a.example.com\n"},
		"jsonpath":            {"as kubectl prints it, without a line break", `jsonpath={.items[*].name}`, "a.example.com"},
		"numbers in jsonpath": {"a whole number stays one", `jsonpath={.items[0].objects}`, "2000000"},
		"jsonpath of no key":  {"kubectl ignores missing keys", `jsonpath={.none}`, ""},
		"go-template":         {"as kubectl prints it", `go-template={{range .items}}{{.state}}{{end}}`, "Ready"},
	}
	for name, tc := range cases {
		var o Output
		c := &cobra.Command{}
		o.AddTo(c)
		if tc.value != "" {
			if err := c.Flags().Set("output", tc.value); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		got := &bytes.Buffer{}
		if err := Write(got, o, list, people); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tc.want, got.String()); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

func TestOutputRefuses(t *testing.T) {
	const all = "choose one of json, yaml, wide, name, jsonpath=TEMPLATE, jsonpath-file=FILE, go-template=TEMPLATE, go-template-file=FILE"
	for value, want := range map[string]string{
		"jsn":                 all,
		"table":               all,
		"jsonpath":            "no template given",
		"jsonpath={.items[":   "jsonpath",
		"go-template={{range": "template",
	} {
		var o Output
		o.AddTo(&cobra.Command{})
		err := o.Set(value)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("-o %s: %v, want one line with %q", value, err, want)
		}
	}
}

func TestOutputIsCompleted(t *testing.T) {
	var o Output
	o.AddDataTo(&cobra.Command{})
	got, _ := o.complete(nil, nil, "")
	if want := []string{"json", "yaml", "jsonpath=", "jsonpath-file=", "go-template=", "go-template-file="}; !slices.Equal(got, want) {
		t.Errorf("completed %v, want %v", got, want)
	}
}
