package explain

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/reason"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

func explain(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out := &bytes.Buffer{}
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: out}
	c := Command(frame.New([]string{"godwit"}, streams, clock.RealClock{}))
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestExplain(t *testing.T) {
	cases := map[string]struct {
		args  []string
		reads []string
	}{
		"one":             {[]string{"Partial"}, []string{"Partial (conditions and events of a CRDMigration, godwit crd run)\n", "\n  Condition:  Stalled\n  Event:      Warning\n"}},
		"in lower case":   {[]string{"lossy"}, []string{"Lossy (godwit revision,", "\n  What to do: If nothing needs"}},
		"of two subjects": {[]string{"Forbidden"}, []string{"(godwit crd plan,", "(godwit revision,"}},
		"all":             {nil, []string{"AdmissionDenied  ", "WrongValue  "}},
	}
	for name, tc := range cases {
		got, err := explain(t, tc.args...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range tc.reads {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in:\n%s", name, want, got)
			}
		}
	}
}

func TestExplainJSON(t *testing.T) {
	got, err := explain(t, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var list render.List[reason.Explanation]
	if err := json.Unmarshal([]byte(got), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range list.Items {
		names = append(names, r.Reason)
	}
	if !slices.Equal(slices.Compact(names), reason.Names()) || list.Kind != "ReasonList" {
		t.Errorf("%s of %d reasons, want a ReasonList of all %d", list.Kind, len(names), len(reason.Names()))
	}
}

func TestExplainSuggests(t *testing.T) {
	for given, want := range map[string]string{
		"StoredVersionNotinspek": "did you mean StoredVersionNotInSpec?",
		"Lossi":                  "did you mean Lossy?",
		"Zzzzzz":                 "list all reasons: godwit explain",
	} {
		_, err := explain(t, given)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
}

func TestComplete(t *testing.T) {
	if got := complete([]string{"StoredVersionRemoved"}, "storedVersion"); !slices.Equal(got, []string{"StoredVersionNotInSpec", "StoredVersionsDoubtful", "StoredVersionsTrusted"}) {
		t.Errorf("completed %v", got)
	}
}
