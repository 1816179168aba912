package externalnamereport

import (
	"io"
	"testing"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/rendertest"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/ready"
)

// Items whose fields are all set.
var (
	fullPlan = Plan{
		Kind: "Member", Namespace: "shop", Name: "anna", Class: fleet.Legacy, Form: "upper", Current: " ANNA", Proposed: "anna", Owner: "argocd", Action: fleet.Skip,
		Problem: render.Problem{Reason: "NotOurs", Message: "another client owns the name", Remedy: "change it there"}, SourcePatch: "metadata: {}",
	}
	fullRun = Run{
		Kind: "Member", Namespace: "shop", Name: "anna", Phase: fleet.PhaseDeferred, Before: "ANNA", After: "ANNA", Problem: render.Problem{Reason: "NotPaused", Message: "the provider did not pause", Remedy: "see its logs"},
	}
	fullReady = Readiness{Kind: "Member", Decision: ready.Decision{Namespace: "shop", Name: "anna", Ready: true, Reason: ready.NoDifference, Message: "it is the same", Command: "kubectl patch"}}
)

// TestContract: the JSON of each document.
func TestContract(t *testing.T) {
	for file, document := range map[string]any{"plan.json": render.NewList(planKind, []Plan{fullPlan}), "run.json": render.NewList(runKind, []Run{fullRun}), "ready.json": ReadyList([]Readiness{fullReady})} {
		rendertest.Golden(t, file, func(w io.Writer) error { return render.Encode(w, document) })
	}
}

// TestFormats: the text of each document, wide.
func TestFormats(t *testing.T) {
	wide := render.Style{Wide: true}
	for file, write := range map[string]func(io.Writer) error{
		"plan.txt":  func(w io.Writer) error { return WritePlan(w, wide, []Plan{fullPlan}) },
		"ready.txt": func(w io.Writer) error { return WriteReady(w, wide, []Readiness{fullReady}) },
		"run.txt":   func(w io.Writer) error { return WriteRun(w, wide, []Run{fullRun}) },
	} {
		rendertest.Golden(t, file, write)
	}
}

// TestColumns: what a table shows is in JSON.
func TestColumns(t *testing.T) {
	rendertest.Columns(t, planTable, fullPlan)
	rendertest.Columns(t, runTable, fullRun)
	rendertest.Columns(t, readyTable, fullReady)
}
