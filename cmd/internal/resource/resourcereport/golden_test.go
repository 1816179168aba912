package resourcereport

import (
	"io"
	"testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/rendertest"
)

// Items whose fields are all set.
var (
	fullPlan = Plan{Name: "secrets", Version: "v1", State: "Blocked", Objects: new(int64(1200)), Blockers: []render.Problem{{Reason: "Forbidden", Message: "alice may not", Remedy: "grant it"}}}
	fullRun  = Run{
		Name: "secrets", Version: "v1", Result: Partial, DurationSeconds: 1.5, Failures: []godwit.Failure{{Namespace: "shop", Name: "a", Finding: godwit.Finding{Reason: &godwit.Reason{Name: "Denied"}, Message: "a policy denies it"}}},
		Objects: render.ObjectsOf(godwit.Counts{Migrated: 1, Unchanged: 2, Skipped: 3, Gone: 4, Deferred: 5, Failed: 6}),
	}
	fullVerification = Verification{Name: "secrets", Result: NotProven, Expected: "k8s:enc", Objects: 3, ByForm: map[string]int64{"v1": 1, "k8s:enc": 1}, Unreadable: 1, Message: "1 object is stored as v1", Remedy: "run"}
)

// TestContract: the JSON of each document.
func TestContract(t *testing.T) {
	for file, document := range map[string]any{
		"plan.json": PlanList([]Plan{fullPlan}), "run.json": RunList([]Run{fullRun}), "verify.json": VerificationList([]Verification{fullVerification}),
	} {
		rendertest.Golden(t, file, func(w io.Writer) error { return render.Encode(w, document) })
	}
}

// TestFormats: the text of each document, wide.
func TestFormats(t *testing.T) {
	wide := render.Style{Wide: true}
	for file, write := range map[string]func(io.Writer) error{
		"plan.txt":   func(w io.Writer) error { return WritePlans(w, wide, []Plan{fullPlan}) },
		"run.txt":    func(w io.Writer) error { return WriteRuns(w, wide, []Run{fullRun}) },
		"verify.txt": func(w io.Writer) error { return WriteVerifications(w, wide, []Verification{fullVerification}) },
	} {
		rendertest.Golden(t, file, write)
	}
}

// TestColumns: what a table shows is in JSON.
func TestColumns(t *testing.T) {
	rendertest.Columns(t, planTable, fullPlan)
	rendertest.Columns(t, runTable, fullRun)
	rendertest.Columns(t, verifyTable, fullVerification)
}
