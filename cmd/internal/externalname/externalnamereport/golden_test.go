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

// fullAudit has a finding of each state, and a resource that was not read.
var fullAudit = AuditReport{
	APIVersion: render.APIVersion, Kind: "ExternalNameAuditReport", Kinds: 3, Objects: 1200,
	Items: []AuditFinding{
		{Compare, "buckets.example.org", "Bucket", "", "one", "a", render.Problem{Reason: "CreatedTwice", Message: "it was created 2 times", Remedy: "compare them"}, []string{}},
		{UserAction, "members.example.org", "Member", "shop", "anna", "ANNA", render.Problem{Reason: "Duplicate", Message: "both have one external resource", Remedy: "let one observe it"}, []string{"members.example.org shop/bob"}},
	},
	Unread: []AuditUnread{{"topics.example.org", render.Problem{Reason: "Unreadable", Message: "the webhook does not answer", Remedy: "see its Service"}}, {"events", render.Problem{Reason: "Forbidden", Message: "ann may not list events"}}},
}

// TestContract: the JSON of each document.
func TestContract(t *testing.T) {
	for file, document := range map[string]any{"plan.json": render.NewList(planKind, []Plan{fullPlan}), "run.json": render.NewList(runKind, []Run{fullRun}), "ready.json": ReadyList([]Readiness{fullReady}), "audit.json": fullAudit} {
		rendertest.Golden(t, file, func(w io.Writer) error { return render.Encode(w, document) })
	}
}

// TestFormats: the text of each document, wide.
func TestFormats(t *testing.T) {
	wide := render.Style{Wide: true}
	for file, write := range map[string]func(io.Writer) error{
		"audit.txt": func(w io.Writer) error { return WriteAudit(w, wide, fullAudit, "an administrator runs: godwit rbac") },
		"plan.txt":  func(w io.Writer) error { return WritePlan(w, wide, []Plan{fullPlan}) },
		"ready.txt": func(w io.Writer) error { return WriteReady(w, wide, []Readiness{fullReady}) },
		"run.txt":   func(w io.Writer) error { return WriteRun(w, wide, []Run{fullRun}) },
	} {
		rendertest.Golden(t, file, write)
	}
}

// TestColumns: what a table shows is in JSON.
func TestColumns(t *testing.T) {
	rendertest.Columns(t, auditTable, fullAudit.Items[1])
	rendertest.Columns(t, planTable, fullPlan)
	rendertest.Columns(t, runTable, fullRun)
	rendertest.Columns(t, readyTable, fullReady)
}
