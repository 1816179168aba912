package hub

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// TestWarnings: what a source reports with ValidateSource is stored if it is of a cluster of the migration, bounded, and printable.
//
// Matrix: H136.
func TestWarnings(t *testing.T) {
	spec := api.ManagedClusterMigrationSpec{From: "hub1", To: "hub2", IncludedManagedClusters: []api.ClusterName{"c1", "c2"}}
	now := time.Unix(1000, 0).UTC()
	s := Step(New(spec), Start{At: now})
	for len(commandsTo(s, Source)) == 0 {
		e := Due(s)[0]
		s = Step(s, Report{At: now, Party: e.Party, Stage: e.Stage, Attempt: e.Attempt, Finished: true})
	}
	e := commandsTo(s, Source)[0]
	report := Report{At: now, Party: Source, Stage: e.Stage, Attempt: e.Attempt, Warnings: []Warning{
		{"c1", "AppliedFromSource", "a tool\napplies it"}, {"other", "AppliedFromSource", "not of the migration"}, {"c2", "no reason", "x"}, {"c2", "AppliedFromSource", strings.Repeat("x", 2000)},
	}}
	for range 50 {
		report.Warnings = append(report.Warnings, Warning{"c2", "AddOnFinalizer", "y"})
	}
	s = Step(s, report)
	if len(s.Warnings) != MaxWarnings || s.Warnings[0].Cluster != "c1" || strings.Contains(s.Warnings[0].Message, "\n") || s.Warnings[1].Cluster != "c2" || len(s.Warnings[1].Message) > MaxWarning {
		t.Fatalf("the warnings are %+v", s.Warnings)
	}
	if notes := s.Notes(); len(notes) != 2 || !strings.HasPrefix(notes[0].Message, "c1, c2: a tool") || !strings.HasPrefix(notes[1].Message, "c2: y") {
		t.Errorf("the notes are %+v", notes)
	}
	var shards []map[string]string
	for _, shard := range s.Shards("move") {
		shards = append(shards, shard.Data)
	}
	again, err := Restore(spec, s.Phase, s.Progress(len(shards)), shards)
	if diff := cmp.Diff(s.Warnings, again.Warnings); err != nil || diff != "" {
		t.Errorf("%v (-before +after):\n%s", err, diff)
	}
	report.Finished, report.Warnings = true, nil
	if s = Step(s, report); len(s.Warnings) != 0 {
		t.Errorf("what is no more so stays: %+v", s.Warnings)
	}
}

// commandsTo returns the due commands to a party.
func commandsTo(s State, p Party) (all []Effect) {
	for _, e := range Due(s) {
		if e.Party == p {
			all = append(all, e)
		}
	}
	return all
}
