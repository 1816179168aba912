package hub

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

func TestReadFailure(t *testing.T) {
	cases := map[string]struct {
		why, reason, text string
		want              Failure
	}{
		"typed":                {"the reason is beside the text", "NotInTime", "NotInTime: AwaitReturn: no lease", Failure{"NotInTime", "AwaitReturn: no lease"}},
		"former form":          {"the text begins with the reason", "", "NotInTime: AwaitReturn: no lease", Failure{"NotInTime", "AwaitReturn: no lease"}},
		"no reason":            {"the message is the manager's own", "", "the hub did not answer", Failure{Message: "the hub did not answer"}},
		"a colon":              {"a sentence is no reason", "", "placement east: it selects nothing", Failure{Message: "placement east: it selects nothing"}},
		"no name of a reason":  {"an agent may send anything", "\x1b[31m", "\x1b[31m: no", Failure{Message: "\x1b[31m: no"}},
		"a reason of any size": {"an agent may send anything", strings.Repeat("R", 64), strings.Repeat("R", 64) + ": no", Failure{Message: strings.Repeat("R", 64) + ": no"}},
		"another reason":       {"the text does not have it", "NotInTime", "no lease", Failure{Message: "no lease"}},
		"nothing":              {"nothing has failed", "", "", Failure{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ReadFailure(tc.reason, tc.text)
			if got != tc.want {
				t.Errorf("%+v, want %+v: %s", got, tc.want, tc.why)
			}
			if got.String() != tc.text {
				t.Errorf("the text is %q, want %q", got.String(), tc.text)
			}
		})
	}
}

// TestFormerFailures: states and reports without reasons are read, as programs write them that know no field for reasons.
func TestFormerFailures(t *testing.T) {
	spec := api.ManagedClusterMigrationSpec{From: "hub1", To: "hub2", IncludedManagedClusters: []api.ClusterName{"c1"}}
	shard := map[string]string{
		"format": "1", "shards": "1",
		"clusters": `[{"name":"c1","state":"Returning","failedIn":"Deploying","message":"NotInTime: no lease"}]`,
		"source":   `{"stage":"Registering","attempt":4,"finished":true,"error":"RequestRefused: no","clusterErrors":{"c1":"NotInTime: no lease"}}`,
	}
	s, err := Restore(spec, api.PhaseRegistering, &api.MigrationProgress{Stage: api.PhaseRegistering, Attempt: 4, Shards: 1}, []map[string]string{shard})
	if err != nil {
		t.Fatal(err)
	}
	late := Failure{"NotInTime", "no lease"}
	r := s.Records[Key{Party: Source}]
	if s.Clusters[0].Failure != late || r.Error != (Failure{"RequestRefused", "no"}) || r.ClusterErrors["c1"] != late {
		t.Errorf("cluster %+v, record %+v", s.Clusters[0], r)
	}
	var got Report
	if err := json.Unmarshal([]byte(`{"Stage":"Deploying","Attempt":4,"Error":"RequestRefused: no","ClusterErrors":{"c1":"NotInTime: no lease"}}`), &got); err != nil {
		t.Fatal(err)
	}
	want := Report{Stage: api.PhaseDeploying, Attempt: 4, Error: Failure{"RequestRefused", "no"}, ClusterErrors: map[string]Failure{"c1": late}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// TestReportIsStored: an agent repeats the report that it has stored.
func TestReportIsStored(t *testing.T) {
	want := Report{
		At: time.Unix(1_800_000_000, 0).UTC(), Party: Target, Stage: api.PhaseRegistering, Attempt: 7, Finished: true, Reason: "Failed",
		Error: Failure{"RequestRefused", "no"}, ClusterErrors: map[string]Failure{"c1": {"NotInTime", "no lease"}, "c2": {Message: "no"}},
		Clusters: []string{"c1", "c2"}, Done: []string{"c3"},
	}
	text, err := json.Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", text, diff)
	}
}
