package planreport

import (
	"testing"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/rendertest"
)

// TestColumns: what a table shows is in JSON.
func TestColumns(t *testing.T) {
	o := Object{Name: "widgets.example.com", State: Blocked, Detail: "stores v2", Next: "godwit crd plan", Blockers: []render.ObjectProblem{
		{Problem: render.Problem{Reason: "NoStorageVersion", Message: "none is set", Remedy: "set one"}}, {Object: "shop/a", Problem: render.Problem{Reason: "Odd", Message: "it is odd"}},
	}}
	rendertest.Columns(t, rowTable, Row{Cluster: "east", Domain: CRDs, State: Blocked, Counts: Counts{Clean: 2, Ready: 1}, Blockers: o.Blockers, Next: o.Next})
	rendertest.Columns(t, objectTable, placedObject{"east", CRDs, o})
}
