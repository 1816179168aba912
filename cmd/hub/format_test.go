package hub

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/format"
)

// storedMigration is a file of test/state.
type storedMigration struct {
	Phase    api.Phase             `json:"phase"`
	Progress api.MigrationProgress `json:"progress"`
	Shards   []map[string]string   `json:"shards"`
}

func migrationOf(t *testing.T, release string) storedMigration {
	t.Helper()
	text, err := os.ReadFile("../../test/state/" + release + "/migration.json")
	if err != nil {
		t.Fatal(err)
	}
	var m storedMigration
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestStateOfOtherReleases: what v0.1.0 stores is restored and stored in the same form, with each field of each stored type. A
// newer form is refused, also where its ConfigMaps were written without the commit.
func TestStateOfOtherReleases(t *testing.T) {
	spec := api.ManagedClusterMigrationSpec{From: "hub1", To: "hub2", IncludedManagedClusters: []api.ClusterName{"c1"}}
	oldest := migrationOf(t, "v0.1.0")
	state, err := Restore(spec, oldest.Phase, &oldest.Progress, oldest.Shards)
	if err != nil {
		t.Fatal(err)
	}
	written := storedMigration{Phase: state.Phase, Progress: *state.Progress(1)}
	for _, s := range state.Shards("move") {
		written.Shards = append(written.Shards, s.Data)
	}
	if diff := cmp.Diff(oldest, written); diff != "" {
		t.Errorf("written otherwise (-v0.1.0 +now):\n%s", diff)
	}
	later := []string{"DeniedRequests", "TargetLost", "Certificate", "Warnings", "ShardDigests", "SourceKey", "TargetKey"} // state.md says what an older manager does
	for _, stored := range []any{oldest.Progress, storeCluster(state.Clusters[0]), storeRecord(state.Records[Key{Party: Source}])} {
		v := reflect.ValueOf(stored)
		for i := range v.NumField() {
			if v.Field(i).IsZero() && !slices.Contains(later, v.Type().Field(i).Name) {
				t.Errorf("v0.1.0 stores no field %s of %T: say in docs/reference/state.md what a program does that does not know it", v.Type().Field(i).Name, stored)
			}
		}
	}
	newer := migrationOf(t, "newer")
	uncommitted := newer
	uncommitted.Progress.Format = format.Current
	for name, m := range map[string]storedMigration{"committed": newer, "uncommitted": uncommitted} {
		var refused *format.NewerError
		if s, err := Restore(spec, m.Phase, &m.Progress, m.Shards); !errors.As(err, &refused) || refused.Format != "2" {
			t.Errorf("%s: format 2 is restored as %+v: %v", name, s, err)
		}
	}
}
