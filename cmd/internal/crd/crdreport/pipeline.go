package crdreport

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
)

// sarifSchema is the URL of the schema of SARIF 2.1.0.
const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// The types of SARIF 2.1.0 that a check needs, by the names of the standard.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
		Help             sarifText `json:"help"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifLogical struct {
		Name string `json:"name"`
		Kind string `json:"kind"`
	}
)

// levels has the level of SARIF for each result that a finding leads to.
var levels = map[releasecheck.Result]string{
	releasecheck.Refused: "error", releasecheck.Unsafe: "error", releasecheck.Unknown: "warning", releasecheck.Safe: "note",
}

// WriteSARIF writes checks as SARIF 2.1.0: a result for each finding, at the file that has the CRD. catalogs declare
// the reasons of the findings.
func WriteSARIF(w io.Writer, checks []Check, version string, catalogs ...*godwit.Catalog) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "godwit", Version: version, Rules: []sarifRule{}}}, Results: []sarifResult{}}
	for _, c := range checks {
		for _, f := range c.Reasons {
			run.Results = append(run.Results, sarifResult{
				RuleID: f.Reason, Level: levels[f.Result], Message: sarifText{render.WithRemedy(f.Message, f.Remedy)},
				Locations: []sarifLocation{{Physical: artifact(c.Source), Logical: []sarifLogical{{Name: c.Name, Kind: "resource"}}}},
			})
			if known := func(r sarifRule) bool { return r.ID == f.Reason }; !slices.ContainsFunc(run.Tool.Driver.Rules, known) {
				run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, ruleOf(f.Reason, catalogs))
			}
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}})
}

func ruleOf(name string, catalogs []*godwit.Catalog) sarifRule {
	for _, c := range catalogs {
		if r := c.Find(name); r != nil {
			return sarifRule{ID: name, ShortDescription: sarifText{r.Meaning}, Help: sarifText{remedy.Manager.Sentence(r.Fix)}}
		}
	}
	return sarifRule{ID: name, ShortDescription: sarifText{name}, Help: sarifText{"See the message."}}
}

// artifact returns the location of a source. It returns nil for stdin.
func artifact(source string) *sarifPhysical {
	if source == "" {
		return nil
	}
	uri := source
	if u, err := url.Parse(source); err != nil || u.Host == "" { // source is a path
		uri = (&url.URL{Path: filepath.ToSlash(source)}).String()
	}
	return &sarifPhysical{sarifArtifact{URI: uri}}
}

// The elements of JUnit XML that its readers agree on.
type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string       `xml:"classname,attr"`
		Name    string       `xml:"name,attr"`
		File    string       `xml:"file,attr,omitempty"`
		Failure *junitReason `xml:"failure"`
		Error   *junitReason `xml:"error"`
		Notes   string       `xml:"system-out,omitempty"`
	}
	junitReason struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes checks as JUnit XML: a test case for each CRD, which fails if the release is Refused or Unsafe,
// and has an error if the result is Unknown.
func WriteJUnit(w io.Writer, checks []Check) error {
	suite := junitSuite{Name: "godwit crd check", Tests: len(checks)}
	for _, c := range checks {
		one := junitCase{Class: "customresourcedefinition", Name: c.Name, File: c.Source}
		var notes, reasons []string
		first := render.Problem{Reason: c.Result, Message: c.Name + " is " + c.Result}
		for _, f := range slices.Backward(c.Reasons) {
			if f.Result == releasecheck.Safe {
				notes = append(notes, f.Line())
				continue
			}
			first, reasons = f.Problem, append(reasons, f.Line())
		}
		slices.Reverse(notes)
		slices.Reverse(reasons)
		one.Notes = strings.Join(notes, "\n")
		failed := &junitReason{Type: first.Reason, Message: first.Message, Text: strings.Join(reasons, "\n")}
		switch releasecheck.Result(c.Result) {
		case releasecheck.Refused, releasecheck.Unsafe:
			one.Failure = failed
			suite.Failures++
		case releasecheck.Unknown:
			one.Error = failed
			suite.Errors++
		}
		suite.Cases = append(suite.Cases, one)
	}
	text, err := xml.MarshalIndent(junitSuites{Suite: suite}, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

// WriteCheckPage writes checks as Markdown, for a comment on a change.
func WriteCheckPage(w io.Writer, checks []Check) error {
	var text strings.Builder
	text.WriteString("### CRDs of the next release\n\n" + checkTable.Markdown(checks))
	for _, c := range checks {
		for i, f := range c.Reasons {
			if i == 0 {
				fmt.Fprintf(&text, "\n**`%s`**\n\n", c.Name)
			}
			fmt.Fprintf(&text, "- %s **%s**: %s\n  - %s\n", reasonMarks[f.Result].Text, f.Reason, render.MarkdownText(f.Message), render.MarkdownText(f.Remedy))
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}
