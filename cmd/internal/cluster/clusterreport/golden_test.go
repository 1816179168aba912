package clusterreport

import (
	"io"
	"testing"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/rendertest"
)

// Documents whose fields are all set.
var (
	fullMigration = Migration{
		APIVersion: render.APIVersion, Kind: migrationKind, Namespace: "shop", Name: "east", From: "hub1", To: "hub2", Phase: api.PhaseFailed, Settled: true,
		Cause: render.Cause{Reason: "ClustersNotMoved", Message: "some were not moved"}, Seconds: 90, Counts: Counts{6, 3, 2, 1, 1, 1},
		Clusters: []Cluster{{Name: "c1", State: hub.Restored, Step: "DeleteCreated", Hub: "hub1", Cause: render.Cause{Reason: "Denied", Message: "a policy denies c1"}, Warnings: []render.Cause{{Reason: "AddOnFinalizer", Message: "it waits for its agent"}}, Seconds: 40}},
	}
	fullPreflight = Preflight{
		APIVersion: render.APIVersion, Kind: preflightKind, From: "hub1", To: "hub2", Decision: preflight.Blocked,
		Checks:   []Check{{Name: preflight.CheckSourceHub, Decision: preflight.Blocked, Problem: render.Problem{Reason: "HubNotChecked", Message: "no access", Remedy: "grant it"}}},
		Clusters: []Candidate{{Name: "c1", Decision: preflight.AtRisk, Reasons: []render.Cause{{Reason: "LocalCluster", Message: "it is the hub"}}, AtRisk: []render.Cause{{Reason: "AddOnStays", Message: "a stays"}}}},
	}
)

// TestContract: the JSON of each document.
func TestContract(t *testing.T) {
	for file, document := range map[string]any{
		"migration.json": fullMigration, "migrations.json": MigrationList([]Migration{fullMigration}), "preflight.json": fullPreflight,
	} {
		rendertest.Golden(t, file, func(w io.Writer) error { return render.Encode(w, document) })
	}
}

// TestFormats: the text of each document, wide.
func TestFormats(t *testing.T) {
	wide := render.Style{Wide: true}
	for file, write := range map[string]func(io.Writer) error{
		"migration.txt":  func(w io.Writer) error { return WriteMigration(w, wide, fullMigration) },
		"migrations.txt": func(w io.Writer) error { return WriteMigrations(w, wide, []Migration{fullMigration}) },
		"preflight.txt":  func(w io.Writer) error { return WritePreflight(w, wide, fullPreflight) },
	} {
		rendertest.Golden(t, file, write)
	}
}

// TestColumns: what a table shows is in JSON.
func TestColumns(t *testing.T) {
	rendertest.Columns(t, headTable, fullMigration)
	rendertest.Columns(t, migrationTable, fullMigration)
	rendertest.Columns(t, clusterTable, fullMigration.Clusters[0])
	rendertest.Columns(t, candidateTable, fullPreflight.Clusters[0])
}
