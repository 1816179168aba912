package crdreport

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/joshdk/go-junit"
	"github.com/xeipuuv/gojsonschema"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/bridge"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/test/gomodule"
)

// checked is a check with each result, and with text that must be escaped.
var checked = []Check{
	{Name: "widgets.example.com", Result: "Refused", RemovedVersions: []string{"v1"}, Steps: &Steps{Result: bridge.Ready, Target: "v2", Kinds: []bridge.Kind{bridge.Migrate, bridge.Remove}}, Source: "config/crd bases/widgets.yaml", Reasons: []Finding{
		{Result: releasecheck.Safe, Problem: render.Problem{Reason: "NoteOfTest", Message: "a note", Remedy: "read it"}},
		{Result: releasecheck.Refused, Problem: render.Problem{Reason: releasecheck.ReasonStoredVersionRemoved.Name, Message: `status.storedVersions has "v1" <&|>`, Remedy: "godwit crd run widgets.example.com"}},
	}},
	{Name: "gadgets.example.com", Result: "Unknown", Reasons: []Finding{{Result: releasecheck.Unknown, Problem: render.Problem{Reason: "Forbidden", Message: "alice may not", Remedy: "grant it"}}}},
	{Name: "geese.example.com", Result: "Safe", Source: "https://example.com/geese.yaml"},
}

// sarifModule has the schema of SARIF 2.1.0, as OASIS publishes it, in a constant.
const sarifModule = "github.com/owenrumney/go-sarif/v3@v3.2.3"

// standard reads the schema out of the module's source.
func standard(t *testing.T) *gojsonschema.Schema {
	t.Helper()
	dir, err := gomodule.Dir(t.Context(), sarifModule)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, "pkg", "report", "v210", "sarif", "schema.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var text string
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, err = strconv.Unquote(literal.Value)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	schema, err := gojsonschema.NewSchema(gojsonschema.NewStringLoader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestSARIF: the log is valid by the schema of the standard, which forbids what it does not know.
func TestSARIF(t *testing.T) {
	schema := standard(t)
	for name, checks := range map[string][]Check{"all results": checked, "no CRD": nil} {
		var text bytes.Buffer
		if err := WriteSARIF(&text, checks, "v1.2.3", &releasecheck.Reasons, &decision.Reasons); err != nil {
			t.Fatal(err)
		}
		result, err := schema.Validate(gojsonschema.NewBytesLoader(text.Bytes()))
		if err != nil || !result.Valid() {
			t.Errorf("%s: %v, %v in\n%s", name, err, result.Errors(), text.String())
		}
	}
	if result, err := schema.Validate(gojsonschema.NewStringLoader(`{"version":"2.1.0","runs":[{}]}`)); err != nil || result.Valid() {
		t.Errorf("a run without a tool is valid: %v", err)
	}
}

func TestSARIFResults(t *testing.T) {
	var text bytes.Buffer
	if err := WriteSARIF(&text, checked, "v1.2.3", &releasecheck.Reasons); err != nil {
		t.Fatal(err)
	}
	var log sarifLog
	if err := json.Unmarshal(text.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	results := log.Runs[0].Results
	var got []string
	for _, r := range results {
		got = append(got, r.Level)
	}
	if diff := cmp.Diff([]string{"note", "error", "warning"}, got); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
	if uri := results[1].Locations[0].Physical.Artifact.URI; uri != "config/crd%20bases/widgets.yaml" {
		t.Errorf("the file is %s", uri)
	}
	if results[2].Locations[0].Physical != nil {
		t.Error("a CRD from stdin has a file")
	}
	if rule := log.Runs[0].Tool.Driver.Rules[1]; rule.ID != releasecheck.ReasonStoredVersionRemoved.Name || rule.Help.Text == "See the message." {
		t.Errorf("the rule is %+v", rule)
	}
}

func TestJUnit(t *testing.T) {
	var text bytes.Buffer
	if err := WriteJUnit(&text, checked); err != nil {
		t.Fatal(err)
	}
	suites, err := junit.Ingest(text.Bytes())
	if err != nil || len(suites) != 1 {
		t.Fatalf("%d suites, %v in\n%s", len(suites), err, text.String())
	}
	totals, tests := suites[0].Totals, suites[0].Tests
	if totals.Tests != 3 || totals.Failed != 1 || totals.Error != 1 || totals.Passed != 1 {
		t.Errorf("the totals are %+v in\n%s", totals, text.String())
	}
	want := `StoredVersionRemoved: status.storedVersions has "v1" <&|>; godwit crd run widgets.example.com`
	if err := tests[0].Error; err == nil || !strings.Contains(err.Error(), want) || tests[0].SystemOut != "NoteOfTest: a note; read it" {
		t.Errorf("the first case is %+v, want failure %q", tests[0], want)
	}
	if attribute := tests[0].Properties["file"]; attribute != "config/crd bases/widgets.yaml" {
		t.Errorf("the file is %q", attribute)
	}
}
