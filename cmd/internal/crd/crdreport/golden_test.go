package crdreport

import (
	"io"
	"testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/rendertest"
	"github.com/godwit-dev/godwit/crdmigrator/advise"
	"github.com/godwit-dev/godwit/crdmigrator/rescue"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// Items whose fields are all set.
var (
	fullProblem = render.Problem{Reason: "TimedOut", Message: "no answer", Remedy: "try again"}
	fullPlan    = Plan{
		Name: "widgets.example.com", State: "Blocked", StorageVersion: "v2", ServedVersions: []string{"v1", "v2"}, StoredVersions: []string{"v1"},
		Objects: new(int64(1200)), Unlisted: &Unlisted{fullProblem, true}, ManagedFields: "Stale",
		Blockers: []render.Problem{fullProblem}, Warnings: []render.Problem{{Reason: "Odd", Message: "a warning", Remedy: "read it"}},
	}
	fullRun = Run{
		Name: "widgets.example.com", Result: Partial, StorageVersion: "v2", Trimmed: true, DurationSeconds: 1.5, Requests: 7,
		Objects:  render.ObjectsOf(godwit.Counts{Migrated: 1, Unchanged: 2, Skipped: 3, Gone: 4, Deferred: 5, Failed: 6}),
		Unlisted: fullPlan.Unlisted, Failures: []godwit.Failure{{Namespace: "shop", Name: "a", Finding: godwit.Finding{Reason: &godwit.Reason{Name: "Denied"}, Message: "a policy denies it"}}},
		OwnerReferences: OwnerReferences{State: ReferencesStale, Found: 2, Left: 1},
		Values:          &Values{evidence.ByRoundTrips, 7, []values.Loss{{Path: "spec.a", Objects: 2, Examples: []string{"shop/a", "shop/b"}}}, []string{"v0"}},
	}
	fullVerification = Verification{Name: "widgets.example.com", StorageVersion: "v2", Objects: 3, ByVersion: map[string]int64{"v1": 1, "v2": 1}, Unreadable: 1, UnreadableWhy: "a", Remedy: "run"}
	fullRescue       = Rescue{
		Name: "widgets.example.com", StorageVersion: "v2", Result: Rescued, AddedVersions: []string{"v1"}, Objects: fullRun.Objects, Verified: true, Restored: true,
		Changes: []rescue.Change{{Path: "spec.a", Lost: true, Objects: 2, Example: "shop/a"}}, ChangedBy: []string{"helm"}, Failures: fullRun.Failures,
	}
	fullAdvice = Advice{advise.Advice{CRD: "widgets.example.com", Version: "v2", Path: "spec.a", Change: advise.FormatChanged, Approach: advise.Undecided, Options: []advise.Approach{advise.Webhook, advise.Validation}, Rationale: "it is\nnarrower | now"}}
	fullDoctor = DoctorReport{
		APIVersion: render.APIVersion, Kind: "CRDDoctorReportList", Objects: 12, Unread: []Unread{{"secrets", fullProblem, false}},
		Items: []Diagnosis{{Name: "widgets.example.com", State: "Stale", ServedVersions: []string{"v2"}, Findings: []Leftover{
			{Reason: "WebhookNotServed", Broken: true, Objects: 1, Message: "it names v1", Remedy: "name v2"}, {Reason: "TimedOut", Objects: 2, Message: "no answer", Remedy: "try again"},
		}}},
	}
)

// TestContract: the JSON of each document.
func TestContract(t *testing.T) {
	for file, document := range map[string]any{
		"plan.json": PlanList([]Plan{fullPlan}), "run.json": RunList([]Run{fullRun}), "verify.json": VerificationList([]Verification{fullVerification}),
		"check.json": CheckList(checked), "rescue.json": RescueList([]Rescue{fullRescue}),
		"advise.json": AdviceList([]advise.Advice{fullAdvice.Advice}), "doctor.json": fullDoctor,
	} {
		rendertest.Golden(t, file, func(w io.Writer) error { return render.Encode(w, document) })
	}
}

// TestFormats: the text of each document, wide, and the formats of check and advise for pipelines and pages.
func TestFormats(t *testing.T) {
	wide := render.Style{Wide: true}
	for file, write := range map[string]func(io.Writer) error{
		"plan.txt":    func(w io.Writer) error { return WritePlans(w, wide, []Plan{fullPlan}, true) },
		"run.txt":     func(w io.Writer) error { return WriteRuns(w, wide, []Run{fullRun}, Folded{}) },
		"verify.txt":  func(w io.Writer) error { return WriteVerifications(w, wide, []Verification{fullVerification}) },
		"check.txt":   func(w io.Writer) error { return WriteChecks(w, wide, checked) },
		"check.md":    func(w io.Writer) error { return WriteCheckPage(w, checked) },
		"check.sarif": func(w io.Writer) error { return WriteSARIF(w, checked, "v1.2.3") },
		"check.xml":   func(w io.Writer) error { return WriteJUnit(w, checked) },
		"rescue.txt":  func(w io.Writer) error { return WriteRescue(w, wide, fullRescue) },
		"advise.txt":  func(w io.Writer) error { return WriteAdvice(w, wide, []Advice{fullAdvice}) },
		"advise.md":   func(w io.Writer) error { return WriteAdvicePages(w, []Advice{fullAdvice}) },
		"doctor.txt":  func(w io.Writer) error { return WriteDoctorReport(w, wide, fullDoctor, true, "") },
	} {
		rendertest.Golden(t, file, write)
	}
}

// TestColumns: what a table shows is in JSON.
func TestColumns(t *testing.T) {
	rendertest.Columns(t, planTable, fullPlan)
	rendertest.Columns(t, runTable, fullRun)
	rendertest.Columns(t, verifyTable, fullVerification)
	rendertest.Columns(t, checkTable, checked[0])
	rendertest.Columns(t, rescueTable, fullRescue)
	rendertest.Columns(t, adviceTable, fullAdvice)
	rendertest.Columns(t, pageTable(userText), fullAdvice)
	rendertest.Columns(t, doctorTable, fullDoctor.Items[0])
}
