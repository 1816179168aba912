package browser_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/evidence/evidencereport"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionreport"
	"github.com/godwit-dev/godwit/test/chromium"
)

// Sizes of windows: of a laptop, and of a telephone.
const (
	wide, high   = 1280, 900
	narrow, tall = 390, 844
)

var html = chromium.Tests{Target: "make test-html", Switch: "GODWIT_TEST_HTML", Timeout: time.Minute, Width: wide, Height: high}

func hint(words string) string { return "godwit " + words + " --context=east" }

// plans of many CRDs, of which some have work, are blocked or can't be read.
func plans(n int) []crdreport.Plan {
	all := make([]crdreport.Plan, n)
	for i := range all {
		count := int64(i * 40)
		p := crdreport.Plan{
			Name: fmt.Sprintf("kind%03d.group%d.example.com", i, i%7), State: "Clean", StorageVersion: "v1", StoredVersions: []string{"v1"}, Objects: &count,
		}
		switch {
		case i%50 == 3:
			p.State, p.StoredVersions = "Ready", []string{"v1beta1", "v1"}
		case i%100 == 7:
			p.State, p.StoredVersions = "Blocked", []string{"v1alpha1", "v1"}
			p.Blockers = []render.Problem{{
				Reason: "StoredVersionNotInSpec", Message: "status.storedVersions of " + p.Name + " names v1alpha1, which spec.versions does not have: objects stored at it can't be read",
				Remedy: `bring version v1alpha1 back with served: false, then run again: kubectl patch crd ` + p.Name + ` --type=json -p '[{"op": "add", "path": "/spec/versions/-", "value": {}}]'`,
			}}
		case i%150 == 11:
			p.State, p.Objects = "Unknown", nil
			p.Unlisted = &crdreport.Unlisted{Problem: render.Problem{Reason: "Timeout", Message: "the API server did not list one object within 10 s", Remedy: "see whether the conversion webhook answers"}}
		}
		all[i] = p
	}
	return all
}

// overview is a plan of three clusters, of which one does not answer.
func overview() planreport.PlanList {
	revisions := revisionreport.PlanList{Items: []revisionreport.Plan{
		{Namespace: "shop", Name: "web-u1.medium", State: revisionreport.StateUpgrade, Version: "v1alpha1", Target: "v1beta1"},
		{Namespace: "shop", Name: "mail-u1.medium", State: revisionreport.StateDeferred, Version: "v1alpha1", Target: "v1beta1", Problem: render.Problem{Reason: "Running", Message: "VirtualMachine mail is running", Remedy: "stop it, or use --on-running=Hold"}},
		{Namespace: "shop", Name: "new-u1.medium", State: revisionreport.StateUpToDate, Version: "v1beta1", Target: "v1beta1"},
	}}
	named := crdreport.NoDoctorReport()
	named.Items = []crdreport.Diagnosis{{Name: "kind003.group3.example.com", State: "Stale", ServedVersions: []string{"v1"}, Findings: []crdreport.Leftover{{
		Reason: "WebhookNotServed", Broken: true, Objects: 1,
		Message: "webhook guard.example.com of validatingwebhookconfiguration guard names only v1beta1, which kind003.group3.example.com does not serve",
		Remedy:  `if the webhook knows v1, name it in the rule: kubectl patch validatingwebhookconfiguration guard --type=json -p '[{"op":"replace"}]'`,
	}}}}
	rows := []planreport.Row{planreport.CRDRow(plans(300), hint), planreport.ReferenceRow(named, hint, ""), planreport.RevisionRow(revisions, hint), planreport.CRDRow(plans(3), hint)}
	for i, cluster := range []string{"east", "east", "east", "canary"} {
		rows[i].Cluster = cluster
	}
	away := planreport.FailedRow(planreport.Cluster, planreport.Unreachable, render.Problem{
		Reason: "Unreadable", Message: "https://10.0.0.1:6443 (context west) can't be reached: no answer in time", Remedy: "check the address with `kubectl config view --minify`",
	})
	away.Cluster = "west"
	return planreport.NewPlanList(append(rows, away), "v1.0.0", time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC),
		"Built-in resources have no row: godwit resource plan --all --context=CONTEXT")
}

// migration is the evidence of a cluster, with a file that can't be read.
func migration(t *testing.T) evidencereport.Report {
	t.Helper()
	text := func(document any) []byte {
		encoded, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	runs := []crdreport.Run{{Name: "kind003.group3.example.com", StorageVersion: "v1", Result: crdreport.Succeeded, Objects: render.Objects{Total: 120}, Trimmed: true, DurationSeconds: 3.5}}
	runs[0].Objects.Migrated = 120
	verified := []crdreport.Verification{{Name: runs[0].Name, StorageVersion: "v1", Objects: 120, ByVersion: map[string]int64{"v1": 120}}}
	reports := evidencereport.Gather([]evidencereport.File{
		{Name: "east/1-plan.json", Cluster: "east", Folder: true, Text: text(crdreport.PlanList(plans(8))), Time: time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)},
		{Name: "east/2-run.json", Cluster: "east", Folder: true, Text: text(crdreport.RunList(runs)), Time: time.Date(2026, 11, 22, 20, 1, 0, 0, time.UTC)},
		{Name: "east/3-verify.json", Cluster: "east", Folder: true, Text: text(crdreport.VerificationList(verified)), Time: time.Date(2026, 11, 22, 20, 2, 0, 0, time.UTC)},
		{Name: "east/notes.txt", Cluster: "east", Folder: true, Text: []byte("it went well")},
	})
	if len(reports) != 1 {
		t.Fatalf("%d reports, want 1", len(reports))
	}
	return reports[0]
}

// pages writes both kinds of page.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"plan":   func(w *bytes.Buffer) error { return planreport.WriteHTML(w, overview()) },
		"report": func(w *bytes.Buffer) error { return evidencereport.WriteHTML(w, migration(t)) },
	} {
		var text bytes.Buffer
		if err := write(&text); err != nil {
			t.Fatal(err)
		}
		files[name] = filepath.Join(t.TempDir(), name+".html")
		if err := os.WriteFile(files[name], text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

const shownRows = `[...document.querySelectorAll("section[aria-labelledby=crds] tbody tr")].filter(r => r.getClientRects().length > 0).length`

// TestSearch: a reader finds a CRD with the keyboard alone.
func TestSearch(t *testing.T) {
	b := html.Start(t)
	p := html.Open(t, b, pages(t)["plan"], chromium.Options{})
	all := p.Number(shownRows)
	if all != 303 {
		t.Fatalf("the table of CRDs has %d rows, want 303", all)
	}
	p.Press("/")
	if got := p.Text(`document.activeElement.id`); got != "search-clusters" {
		t.Fatalf("the key / focuses %q, want the first search", got)
	}
	p.Evaluate(`document.getElementById("search-crds").focus()`, nil)
	p.Press(strings.Split("kind007", "")...)
	if got := p.Number(shownRows); got != 1 {
		t.Errorf("the search finds %d rows, want 1", got)
	}
	if got := p.Text(`document.querySelector("output[for=search-crds]").textContent`); got != "1 of 303 rows" {
		t.Errorf("a screen reader is told %q, want 1 of 303 rows", got)
	}
	p.Press("Tab", "Tab") // the region of the table, and the blocker within it
	if got := p.Text(`document.activeElement.tagName`); got != "SUMMARY" {
		t.Fatalf("Tab focuses %s, want the blocker", got)
	}
	p.Press("Enter")
	const remedy = `[...document.querySelectorAll("section[aria-labelledby=crds] details[open] code")].map(c => c.textContent).join("")`
	if got := p.Text(remedy); !strings.Contains(got, "kubectl patch crd kind007.") {
		t.Errorf("Enter shows the remedy %q, want a command", got)
	}
	p.Evaluate(`document.querySelector("section[aria-labelledby=crds]").scrollIntoView()`, nil)
	p.Picture("plan-search")
	p.Evaluate(`document.getElementById("search-crds").focus()`, nil)
	p.Press("Escape")
	if got := p.Number(shownRows); got != all {
		t.Errorf("after Escape %d rows are shown, want %d", got, all)
	}
}

// TestKeyboard: the first key leads past the navigation, and each element that can be focused shows it.
func TestKeyboard(t *testing.T) {
	b := html.Start(t)
	p := html.Open(t, b, pages(t)["plan"], chromium.Options{})
	p.Press("Tab")
	if got := p.Text(`document.activeElement.className`); got != "skip" {
		t.Fatalf("the first Tab focuses %q, want the link past the navigation", got)
	}
	p.Press("Enter")
	if got := p.Text(`document.activeElement.id`); got != "main" {
		t.Errorf("the link leads to %q, want main", got)
	}
	for range 10 { // the page has more elements than these
		p.Press("Tab")
		if got := p.Text(`getComputedStyle(document.activeElement).outlineStyle`); got == "none" {
			t.Errorf("the focus is not seen on %s", p.Text(`document.activeElement.outerHTML.slice(0, 200)`))
		}
	}
}

// TestWithoutScript: the page has all of its content, and no search.
func TestWithoutScript(t *testing.T) {
	b := html.Start(t)
	for name, file := range pages(t) {
		p := html.Open(t, b, file, chromium.Options{NoScript: true})
		if rows := p.Number(`document.querySelectorAll("tbody tr").length`); rows < 5 {
			t.Errorf("%s: %d rows without JavaScript", name, rows)
		}
		if fields := p.Number(`[...document.querySelectorAll("input")].filter(i => i.getClientRects().length > 0).length`); fields != 0 {
			t.Errorf("%s: %d fields of a search that does not work", name, fields)
		}
	}
}

// TestPolicy: the browser has no complaint, and runs no script of others.
func TestPolicy(t *testing.T) {
	b := html.Start(t)
	for name, file := range pages(t) {
		p := html.Open(t, b, file, chromium.Options{})
		const run = `(() => { const s = document.createElement("script"); s.textContent = "window.foreign = 1"; document.body.append(s); return window.foreign || 0 })()`
		if got := p.Number(run); got != 0 {
			t.Errorf("%s: the policy lets a script of others run", name)
		}
		if got := p.Number(`getComputedStyle(document.querySelector(".tile")).borderLeftWidth === "6px" ? 1 : 0`); got != 1 {
			t.Errorf("%s: the policy keeps the style of the page from it", name)
		}
		if got := p.Number(`performance.getEntriesByType("resource").length`); got != 0 {
			t.Errorf("%s: the page makes %d requests", name, got)
		}
	}
}

// TestAxe: axe-core has no finding, in light and dark, with all blockers open, on a wide and on a narrow
// screen.
func TestAxe(t *testing.T) {
	b := html.Start(t)
	axe := chromium.Axe(t)
	for name, file := range pages(t) {
		for look, o := range map[string]chromium.Options{
			"light": {}, "dark": {Dark: true}, "narrow": {Width: narrow, Height: tall},
		} {
			p := html.Open(t, b, file, o)
			p.Picture(name + "-" + look)
			if over := p.Number(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				t.Errorf("%s, %s: the page is %d pixels wider than the window", name, look, over)
			}
			if over := p.Text(`[...document.querySelectorAll(".tile")].filter(t => t.scrollWidth > t.clientWidth).map(t => t.textContent).join()`); over != "" {
				t.Errorf("%s, %s: the text does not fit into the tiles %s", name, look, over)
			}
			p.Evaluate(`document.querySelectorAll("details").forEach((d, i) => { d.open = i < 20 })`, nil)
			p.Picture(name + "-" + look + "-open")
			violations, err := p.Violations(axe)
			if err != nil {
				t.Fatalf("%s, %s: %v", name, look, err)
			}
			for _, v := range violations {
				t.Errorf("%s, %s: %s", name, look, v)
			}
		}
	}
}
