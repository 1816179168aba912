package frame

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

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
		o.AddTo(c, nil)
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
		o.AddTo(&cobra.Command{}, nil)
		err := o.Set(value)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("-o %s: %v, want one line with %q", value, err, want)
		}
	}
}

func TestOutputIsCompleted(t *testing.T) {
	var o Output
	o.AddDataTo(&cobra.Command{}, nil)
	got, _ := o.complete(nil, nil, "")
	if want := []string{"json", "yaml", "jsonpath=", "jsonpath-file=", "go-template=", "go-template-file="}; !slices.Equal(got, want) {
		t.Errorf("completed %v, want %v", got, want)
	}
}

func TestProgramsGetADocumentFromACommandThatFails(t *testing.T) {
	const empty = "{\n    \"apiVersion\": \"cli.godwit.dev/v1alpha1\",\n    \"kind\": \"CRDPlanList\",\n    \"items\": []\n}\n"
	failed := errors.New("the API server is away")
	for name, tc := range map[string]struct {
		args   []string
		err    error
		want   string
		reason string
	}{
		"an error":                      {[]string{"plan", "-o", "json"}, failed, empty, "jq gets a list in every case"},
		"an error, for people":          {[]string{"plan"}, failed, "", "the error says it all"},
		"an error, by a template":       {[]string{"plan", "-o", "jsonpath={.kind}"}, failed, "", "a template is of what a command prints"},
		"a refusal":                     {[]string{"plan", "-o", "json"}, Refuse(failed), empty, "it is an error that was not printed"},
		"an unknown flag before -o":     {[]string{"plan", "--nope", "-o", "json"}, nil, empty, "its flags are not set"},
		"an unknown flag after -o":      {[]string{"plan", "--output=json", "--nope"}, nil, empty, "its flags are set"},
		"a wrong argument":              {[]string{"plan", "one", "-ojson"}, nil, empty, "a wrong command line as well"},
		"a command that has printed":    {[]string{"plan", "-o", "json"}, Exit(Pending), "", "its own list is printed"},
		"a command without a document":  {[]string{"version", "-o", "json"}, failed, "", "it prints what it knows by itself"},
		"a command without the flag -o": {[]string{"fix"}, failed, "", "no program reads it"},
	} {
		var out, console bytes.Buffer
		a := New(append([]string{"godwit"}, tc.args...), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &console}, clock.RealClock{})
		root := &cobra.Command{Use: "godwit", SilenceErrors: true, SilenceUsage: true}
		root.SetFlagErrorFunc(a.FlagError)
		run := func(*cobra.Command, []string) error { return tc.err }
		plan := &cobra.Command{Use: "plan", Args: NoArguments, RunE: run}
		version := &cobra.Command{Use: "version", RunE: run}
		var o, none Output
		o.AddTo(plan, crdreport.PlanList(nil))
		none.AddDataTo(version, nil)
		root.AddCommand(plan, version, &cobra.Command{Use: "fix", RunE: run})
		root.SetArgs(a.Args)
		command, err := root.ExecuteContextC(t.Context())
		if code := a.Finish(t.Context(), command, err); code == OK {
			t.Errorf("%s: exit code 0", name)
		}
		if diff := cmp.Diff(tc.want, out.String()); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}
