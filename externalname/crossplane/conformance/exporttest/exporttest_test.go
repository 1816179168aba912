package exporttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/exporttest"
)

// exporter writes one manifest for each external name; the bugs are those of tools that exist.
type exporter struct {
	withoutName, warnsOnStdout, namesCollide, fullManagement, changes bool

	runs int
}

var exportedIDs = []string{"00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"}

func (e *exporter) run(_ context.Context, stdout, stderr io.Writer) error {
	e.runs++
	warnings := stderr
	if e.warnsOnStdout {
		warnings = stdout
	}
	fmt.Fprintln(warnings, "warning: entry admin can't be exported")
	for i, id := range exportedIDs {
		name, annotation, policy := fmt.Sprintf("jane-%d", i+1), "crossplane.io/external-name: "+id, "Observe"
		switch {
		case e.namesCollide:
			name = "jane"
		case e.withoutName:
			annotation = "{}"
		case e.fullManagement:
			policy = "'*'"
		case e.changes:
			name = fmt.Sprintf("jane-%d-%d", i+1, e.runs)
		}
		fmt.Fprintf(stdout, "---\napiVersion: names.example.org/v1\nkind: Person\nmetadata:\n  name: %s\n  annotations: {%s}\nspec:\n  managementPolicies: [%s]\n",
			name, strings.Trim(annotation, "{}"), policy)
	}
	return nil
}

func names(context.Context) ([]string, error) { return exportedIDs, nil }

// Each bug of an exporter is caught by the check that is named with it.
func TestExportFindsBugs(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		exporter exporter
		caught   conformance.CheckName
		evidence string
	}{
		"manifests without an external name":        {exporter{withoutName: true}, exporttest.NamesResources, "has no external name"},
		"warnings on the standard output":           {exporter{warnsOnStdout: true}, exporttest.WritesYAML, "document 1"},
		"names that collide":                        {exporter{namesCollide: true}, exporttest.NamesAreUnique, "two objects are names.example.org/v1/Person//jane"},
		"full management":                           {exporter{fullManagement: true}, exporttest.OnlyObserves, "[*]"},
		"names that differ from one run to another": {exporter{changes: true}, exporttest.IsStable, "something else"},
	}
	for bug, tc := range cases {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			report, err := exporttest.Prove(t.Context(), exporttest.Tool{Run: tc.exporter.run, Names: names})
			if err != nil {
				t.Fatal(err)
			}
			for _, result := range report.Results {
				switch {
				case result.Check == tc.caught:
					if result.State != conformance.Failed || !strings.Contains(result.Detail, tc.evidence) {
						t.Errorf("%s is %s: %s", result.Check, result.State, result.Detail)
					}
				case result.State == conformance.Failed:
					t.Errorf("%s has nothing to do with it, and is %s: %s", result.Check, result.State, result.Detail)
				}
			}
			t.Logf("caught by %s: %s", tc.caught, report.Of(tc.caught).Detail)
		})
	}
}

func TestExport(t *testing.T) {
	t.Parallel()
	report := exporttest.Run(t, exporttest.Tool{Run: (&exporter{}).run, Names: names})
	if got, want := report.String(), "conformance: 5 passed, 0 failed, 0 do not apply, 1 not checked"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	broken := errors.New("no connection")
	_, err := exporttest.Prove(t.Context(), exporttest.Tool{Run: func(context.Context, io.Writer, io.Writer) error { return broken }})
	if !errors.Is(err, broken) {
		t.Errorf("a tool that fails: %v", err)
	}
}
