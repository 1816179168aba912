package revisionreport

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/rendertest"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/reference"
)

// Items whose fields are all set, but for RetainedUntil, whose text has the time zone of the user.
var (
	fullPlan = Plan{
		Namespace: "shop", Name: "web-u1", UID: "1-2", Owner: reference.Owner{Kind: "VirtualMachine", Name: "web"}, Version: "v1", Form: "Object", Target: "v2",
		Action: decision.Deferred, State: StateDeferred, References: []decision.ReferenceStatus{{Kind: "VirtualMachine", Namespace: "shop", Name: "web", Path: "/spec/a", State: decision.ReferenceOld}},
		Losses: []string{"spec.b"}, Problem: render.Problem{Reason: "Running", Message: "it runs", Remedy: "stop it"}, Replacement: "web-u2",
	}
	fullRun = Run{
		Namespace: "shop", Name: "web-u1", Owner: fullPlan.Owner, Phase: StateFailed, Replacement: "web-u2", Problem: render.Problem{Reason: "Refused", Message: "a policy denies it", Remedy: "change it"},
	}
	fullPlans = PlanList{
		APIVersion: render.APIVersion, Kind: "RevisionPlanList", Items: []Plan{fullPlan}, VersionCounts: []revision.VersionCount{{Version: "v1", Form: "Object", Count: 1}},
		DroppableVersions: []string{"v0"}, VersionsInUse: []revision.VersionUse{{Version: "v1", UsedBy: []string{"controllerrevision shop/web-u1"}, Count: 3}},
	}
)

func fullReport() RunReport {
	r := NewRunReport(slices.Values([]Run{fullRun}))
	r.Counts, r.DroppableVersions, r.DurationSeconds = revision.Counts{Discovered: 1, Failed: 1}, []string{"v0"}, 1.5
	return r
}

// TestContract: the JSON of each document.
func TestContract(t *testing.T) {
	for file, document := range map[string]any{"plan.json": fullPlans, "run.json": fullReport()} {
		rendertest.Golden(t, file, func(w io.Writer) error { return render.Encode(w, document) })
	}
}

// TestFormats: the text of each document, wide.
func TestFormats(t *testing.T) {
	wide := render.Style{Wide: true}
	for file, write := range map[string]func(io.Writer) error{
		"plan.txt":   func(w io.Writer) error { return WritePlan(w, wide, fullPlans) },
		"run.txt":    func(w io.Writer) error { return WriteRun(w, wide, fullReport()) },
		"status.txt": func(w io.Writer) error { return WriteStatus(w, wide, fullPlans) },
	} {
		rendertest.Golden(t, file, write)
	}
}

// TestColumns: what a table shows is in JSON.
func TestColumns(t *testing.T) {
	plan, run := fullPlan, fullRun
	plan.RetainedUntil, run.RetainedUntil = new(time.Unix(1_790_000_000, 0)), new(time.Unix(1_790_000_000, 0))
	rendertest.Columns(t, planTable, plan)
	rendertest.Columns(t, statusTable, plan)
	rendertest.Columns(t, runTable, run)
	rendertest.Columns(t, versionTable, fullPlans.VersionCounts[0])
}
