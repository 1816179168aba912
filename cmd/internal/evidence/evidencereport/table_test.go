package evidencereport

import (
	"testing"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/rendertest"
)

// TestColumns: what a table shows is in JSON.
func TestColumns(t *testing.T) {
	o := Object{
		Domain: planreport.CRDs, Name: "widgets.example.com", Before: planreport.Ready, Result: "Succeeded", Detail: "3 migrated", Proof: "Proven", After: planreport.Clean,
		Blockers: render.Of("shop/a", render.Problem{Reason: "Odd", Message: "it is odd", Remedy: "see why"}),
	}
	d := Document{File: "east/1.json", Kind: "CRDPlanList", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), TimeOf: "File", Items: 2, DurationSeconds: 1.5, SHA256: "0598ec10"}
	u := Unread{"east/notes.txt", render.Cause{Reason: "FileUnreadable", Message: "it is no JSON"}}
	rendertest.Columns(t, objectTable, o)
	rendertest.Columns(t, documentTable, d)
	rendertest.Columns(t, unreadTable, u)
	rendertest.Columns(t, reportTable, Report{Cluster: "east", Result: Complete, Objects: []Object{o}, Documents: []Document{d}, Unread: []Unread{u}})
}
