package clusterreport

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/rendertest"
)

var began = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func started(phase api.Phase) *api.ManagedClusterMigration {
	m := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "east"}}
	m.Spec = api.ManagedClusterMigrationSpec{From: "hub1", To: "hub2"}
	m.Status.Phase, m.Status.StartTime = phase, &metav1.Time{Time: began}
	return m
}

// TestHubIsProven: a cluster has a hub in the report only while that is proven.
func TestHubIsProven(t *testing.T) {
	for name, test := range map[string]struct {
		stage api.Phase
		state hub.ClusterState
		want  string
	}{
		"NotStarted":  {"", hub.Selected, ""},
		"Deploying":   {api.PhaseDeploying, hub.Selected, "hub1"},
		"Registering": {api.PhaseRegistering, hub.Selected, ""},
		"Registered":  {api.PhaseRegistering, hub.Registered, "hub2"},
		"Moved":       {api.PhaseCleaning, hub.Moved, "hub2"},
		"Returning":   {api.PhaseRollbacking, hub.Returning, ""},
		"Returned":    {api.PhaseRollbacking, hub.Returned, "hub1"},
		"Restored":    {api.PhaseRollbacking, hub.Restored, "hub1"},
	} {
		s := hub.State{Stage: test.stage, Clusters: []hub.Cluster{{Name: "c1", State: test.state}}}
		if got := MigrationOf(started(test.stage), s, began).Clusters[0].Hub; got != test.want {
			t.Errorf("%s: the hub is %q, want %q", name, got, test.want)
		}
	}
}

// TestSeconds: the time of a cluster ends when it has come to its state.
func TestSeconds(t *testing.T) {
	s := hub.State{Stage: api.PhaseRegistering, Clusters: []hub.Cluster{
		{Name: "c1", State: hub.Registered, Since: began.Add(40 * time.Second)}, {Name: "c2", State: hub.Selected},
	}}
	d := MigrationOf(started(api.PhaseRegistering), s, began.Add(time.Minute))
	if d.Seconds != 60 || d.Clusters[0].Seconds != 40 || d.Clusters[1].Seconds != 60 {
		t.Errorf("the migration has %v s, and its clusters %v and %v; want 60, 40 and 60", d.Seconds, d.Clusters[0].Seconds, d.Clusters[1].Seconds)
	}
}

func TestWriteMigration(t *testing.T) {
	m := started(api.PhaseRegistering)
	s := hub.State{Phase: api.PhaseRegistering, Stage: api.PhaseRegistering, Clusters: []hub.Cluster{
		{Name: "c1", State: hub.Registered, Turn: 2, Since: began.Add(40 * time.Second)},
		{Name: "c2", State: hub.Returning, Failure: hub.Failure{Reason: "SigningRequestDenied", Message: "a policy denies c2"}},
	}}
	m.Status.Conditions = []metav1.Condition{{Type: api.ConditionReconciling, Status: metav1.ConditionTrue, Reason: api.ReasonInProgress.Name, Message: "the migration is in phase Registering"}}
	d := MigrationOf(m, s, began.Add(90*time.Second))
	rendertest.Compare(t, "Clusters with a problem come first, with the reason.", `
NAME   PHASE           FROM   TO     TIME
east   ● Registering   hub1   hub2   1m30s

CLUSTER   STATE          STEP                HUB    TIME    REASON
c2        ! Returning    RestoreAcceptance   -      1m30s   SigningRequestDenied
c1        ● Registered   FinishMoved         hub2   40.0s   -

c2
  ✗ SigningRequestDenied: a policy denies c2

Registering: 1 of 2 clusters moved, 1 failed
InProgress: the migration is in phase Registering
`, func(w io.Writer) error { return WriteMigration(w, render.Style{}, d) })
}

// TestAbortedMigrationIsNoFailure: the clusters are back, as the user asked for.
func TestAbortedMigrationIsNoFailure(t *testing.T) {
	m := started(api.PhaseFailed)
	m.Status.CompletionTime = &metav1.Time{Time: began.Add(time.Minute)}
	m.Status.Conditions = []metav1.Condition{{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: api.ReasonAborted.Name, Message: "a user asked for the rollback"}}
	s := hub.State{Phase: api.PhaseFailed, Stage: api.PhaseRollbacking, Clusters: []hub.Cluster{
		{Name: "c1", State: hub.Restored, Since: began.Add(40 * time.Second)}, {Name: "c2", State: hub.Restored, Since: began.Add(time.Minute)},
	}}
	d := MigrationOf(m, s, began.Add(90*time.Second))
	rendertest.Compare(t, "What was asked for is good.", `
NAME   PHASE       FROM   TO     TIME
east   ✓ Aborted   hub1   hub2   1m0s

CLUSTER   STATE        STEP   HUB    TIME    REASON
c1        ✓ Restored   -      hub1   40.0s   -
c2        ✓ Restored   -      hub1   1m0s    -

Aborted: 0 of 2 clusters moved, 2 back at hub1
Aborted: a user asked for the rollback
`, func(w io.Writer) error { return WriteMigration(w, render.Style{}, d) })
	s.Clusters[1].State, m.Status.CompletionTime = hub.Returning, nil
	if got, want := Progress(MigrationOf(m, s, began)), "Aborted: 0 of 2 clusters moved, 1 not back yet, 1 back at hub1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestNewMigrationIsNotObservedYet: a manager needs a moment.
func TestNewMigrationIsNotObservedYet(t *testing.T) {
	m := started("")
	m.CreationTimestamp = metav1.Time{Time: began}
	for after, want := range map[time.Duration]string{time.Second: "yet", time.Minute: "see whether `godwit manager"} {
		if d := MigrationOf(m, hub.State{}, began.Add(after)); !strings.Contains(d.Message, want) {
			t.Errorf("after %v: %s", after, d.Message)
		}
	}
}

func TestWritePreflight(t *testing.T) {
	r := preflight.Report{
		From: "hub1", To: "hub2",
		Checks: []preflight.Check{
			{Name: preflight.CheckSourceHub, Decision: preflight.Ready},
			{Name: preflight.CheckOnTarget, Decision: preflight.NotChecked, Finding: godwit.Finding{Reason: preflight.ReasonHubNotChecked, Message: "no access to hub2"}},
		},
		Clusters: []preflight.Cluster{
			{Name: "c1", Decision: preflight.NotChecked, Reasons: []godwit.Finding{{Reason: preflight.ReasonHubNotChecked, Message: "no access to hub2"}}},
			{Name: "c2", Decision: preflight.Blocked, Reasons: []godwit.Finding{{Reason: cluster.ReasonLocal, Message: "c2 is the hub"}}, AtRisk: []godwit.Finding{{Reason: preflight.ReasonAddOnStays, Message: "add-on a stays"}}},
		},
	}
	p := PreflightOf(r, func(preflight.Check) string { return "give --to-context=CONTEXT" })
	rendertest.Compare(t, "What blocks comes first, and a finding of a check is not repeated for each cluster.", `
? NotChecked ClustersOnTarget: no access to hub2
  → give --to-context=CONTEXT

CLUSTER   DECISION       REASON
c2        ✗ Blocked      LocalCluster,AddOnStays
c1        ? NotChecked   HubNotChecked

c2
  ✗ LocalCluster: c2 is the hub
  ! AddOnStays: add-on a stays

2 clusters from hub1 to hub2: 1 not checked on both hubs, 1 blocked
`, func(w io.Writer) error { return WritePreflight(w, render.Style{}, p) })
}

// TestCertificatesOfAll: the report names the certificate of each cluster that has left one, also of more than the status has room for.
//
// Matrix: H140.
func TestCertificatesOfAll(t *testing.T) {
	s := hub.State{Phase: api.PhaseFailed, Stage: api.PhaseRollbacking}
	for i := range 30 {
		s.Clusters = append(s.Clusters, hub.Cluster{Name: fmt.Sprintf("cluster-%02d", i), State: hub.Restored, Certificate: began})
	}
	s.Clusters[29].State, s.Clusters[29].Note = hub.Gone, "a user has deleted it"
	var text strings.Builder
	if err := WriteMigration(&text, render.Style{}, MigrationOf(started(api.PhaseFailed), s, began)); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Clusters {
		if want := "a certificate for " + c.Name + " that is valid until 2026-01-01T12:00:00Z"; !strings.Contains(strings.Join(strings.Fields(text.String()), " "), want) {
			t.Errorf("the report does not say %q:\n%s", want, text.String())
		}
	}
	if !strings.Contains(text.String(), "a user has deleted it") {
		t.Errorf("the report has lost the note of a cluster:\n%s", text.String())
	}
}
