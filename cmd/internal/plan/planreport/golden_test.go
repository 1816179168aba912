package planreport_test

import (
	"io"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/rendertest"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// twoClusters is a plan with a row in each kind of state. One cluster does not answer.
func twoClusters() planreport.PlanList {
	plans := crds("Clean", "Ready", "Blocked")
	plans[1].StorageVersion, plans[1].StoredVersions, plans[1].Objects = "v2", []string{"v1", "v2"}, new(int64(1200))
	plans[2].Blockers = []render.Problem{
		{Reason: decision.ReasonStoredVersionNotInSpec.Name, Message: "status.storedVersions of crd2 names v1|v0", Remedy: "kubectl get crd2 -o yaml | kubectl apply -f -"},
		{Reason: "WithoutRemedy", Message: "a policy denies <b>it</b>"},
	}
	named := crdreport.NoDoctorReport()
	named.Items = []crdreport.Diagnosis{{Name: "crd0", State: "Clean", ServedVersions: []string{"v1"}}}
	away := planreport.FailedRow(planreport.Cluster, planreport.Unreachable, render.Problem{Reason: "Unreadable", Message: "no answer in time", Remedy: "check the address"})
	rows := []planreport.Row{planreport.CRDRow(plans, hint), planreport.ReferenceRow(named, hint, ""), away}
	rows[0].Cluster, rows[1].Cluster, rows[2].Cluster = "east", "east", "west_1"
	return planreport.NewPlanList(rows, "v1.0.0", time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC), "Built-in resources have no row")
}

// TestFormats: each format has all that a plan says.
func TestFormats(t *testing.T) {
	l := twoClusters()
	for file, write := range map[string]func(io.Writer) error{
		"plan.txt":      func(w io.Writer) error { return planreport.WriteText(w, render.Style{}, l) },
		"plan-wide.txt": func(w io.Writer) error { return planreport.WriteText(w, render.Style{Wide: true}, l) },
		"plan.md":       func(w io.Writer) error { return planreport.WriteMarkdown(w, l) },
		"plan.json":     func(w io.Writer) error { return render.Encode(w, l) },
		"plan.html":     rendertest.Body(func(w io.Writer) error { return planreport.WriteHTML(w, l) }),
	} {
		rendertest.Golden(t, file, write)
	}
}
