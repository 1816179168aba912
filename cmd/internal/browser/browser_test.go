package browser_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/evidence/evidencereport"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionreport"
)

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

// TestReports writes both kinds of page, for make test-html into a folder that the tests of test/browser read.
func TestReports(t *testing.T) {
	folder := os.Getenv("GODWIT_REPORTS")
	if folder == "" {
		folder = t.TempDir()
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"plan":   func(w *bytes.Buffer) error { return planreport.WriteHTML(w, overview()) },
		"report": func(w *bytes.Buffer) error { return evidencereport.WriteHTML(w, migration(t)) },
	} {
		var text bytes.Buffer
		if err := write(&text); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name+".html"), text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
